import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

/** The built page; the path is right from `src/http` and from `dist/http`. */
const FILE = new URL('../../dist/console/index.html', import.meta.url)

/** The console: one document with its script and style inline. */
export interface ConsolePage {
  readonly html: Uint8Array
  readonly gzip: Uint8Array
  readonly etag: string
  /** Values of `script-src` and `style-src`: the hashes of the inline scripts and styles. */
  readonly scripts: string
  readonly styles: string
}

let cached: ConsolePage | undefined

/** Reads the page once. Undefined when it was not built. @throws Error when it exists and cannot be read */
export function consolePage(file: URL = FILE): ConsolePage | undefined {
  if (cached !== undefined && file === FILE) return cached
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
  if (file === FILE) cached = page
  return page
}

function hashes(html: string, tag: 'script' | 'style'): string {
  const found = html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))
  return [...found].map((match) => `'sha256-${sha256(match[1] as string)}'`).join(' ')
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64')
}
