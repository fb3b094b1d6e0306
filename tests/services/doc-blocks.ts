import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const BLOCK_TIMEOUT_MS = 150_000
const root = fileURLToPath(new URL('../../', import.meta.url))

/** One code block of a documentation page. */
export interface Block {
  /** The page and the line at which the block starts. */
  readonly title: string
  readonly code: string
}

/** The JavaScript blocks of a page, in their order. `page` is a path from the root of the repository. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((match) => ({
    title: `${page}:${text.slice(0, match.index).split('\n').length}`,
    code: match[1] as string,
  }))
}

/** A new folder below `folder` (from the root of the repository), in which code finds the packages installed there. */
export function workFolder(folder = ''): { readonly path: string; remove(): void } {
  const cache = join(root, folder, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const path = mkdtempSync(join(cache, 'doc-blocks-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Printed addresses, and what stands for them in this run. */
export type Replacements = Readonly<Record<string, string>>

/**
 * Runs a block as printed, except for `replacements`, in a process of its own. Returns what it wrote to both streams;
 * rejects with it when the exit status is not 0. `folder`: where it finds its packages.
 */
export async function runBlock(
  block: Block,
  replacements: Replacements,
  { folder = '', env = {} }: { readonly folder?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const work = workFolder(folder)
  try {
    const code = Object.entries(replacements).reduce((text, [from, to]) => text.replaceAll(from, to), block.code)
    writeFileSync(join(work.path, 'code.mjs'), code)
    const { stdout, stderr } = await exec(process.execPath, ['code.mjs'], {
      cwd: work.path,
      env: { ...process.env, ...env },
      timeout: BLOCK_TIMEOUT_MS,
    })
    return stdout + stderr
  } finally {
    work.remove()
  }
}
