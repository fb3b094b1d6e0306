import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const BLOCK_TIMEOUT_MS = 150_000
export const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Block {
  readonly title: string
  readonly code: string
}

/** The code of a page, in its order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((match) => ({
    title: `${page}:${text.slice(0, match.index).split('\n').length}`,
    code: match[1] as string,
  }))
}

/** What the pages print, and where it is in this run. */
export type Places = Readonly<Record<string, string>>

/**
 * Runs a block as it is printed, but for the addresses. `beside`: a folder whose packages it finds, as a user's own program
 * would find them.
 */
export async function runBlock(block: Block, places: Places, beside: string): Promise<void> {
  const cache = join(beside, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'page-'))
  try {
    const code = Object.entries(places).reduce((text, [printed, real]) => text.replaceAll(printed, real), block.code)
    writeFileSync(join(folder, 'code.mjs'), code)
    await exec(process.execPath, ['code.mjs'], { cwd: folder, timeout: BLOCK_TIMEOUT_MS })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
