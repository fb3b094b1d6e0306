import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

/** Beside the build, and found from the sources as well. */
const FILE = new URL('../../dist/console/index.html', import.meta.url)

/** The console as it is sent: one document with its own script and style. */
export interface ConsolePage {
  readonly html: Uint8Array
  readonly gzip: Uint8Array
  readonly etag: string
  /** What `script-src` and `style-src` allow: this page's own, by their hashes. */
  readonly scripts: string
  readonly styles: string
}

let kept: ConsolePage | undefined

/** Reads the page once. Undefined when it was not built. @throws Error when it is there and cannot be read */
export function consolePage(file: URL = FILE): ConsolePage | undefined {
  if (kept !== undefined && file === FILE) return kept
  let html: Buffer
  try {
    html = readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const text = html.toString('utf8')
  const page = {
    html,
    gzip: gzipSync(html, { level: 9 }),
    etag: `"${sha256(html).slice(0, 22)}"`,
    scripts: hashes(text, 'script'),
    styles: hashes(text, 'style'),
  }
  if (file === FILE) kept = page
  return page
}

function hashes(html: string, tag: 'script' | 'style'): string {
  const found = html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))
  return [...found].map((match) => `'sha256-${sha256(match[1] as string)}'`).join(' ')
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64')
}
