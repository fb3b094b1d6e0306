import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Block {
  readonly where: string
  readonly code: string
}

/** The code of a page of docs/guards/, with the line where it begins. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(`${root}docs/guards/${page}.md`, 'utf8')
  return [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((match) => ({
    where: `${page}.md:${text.slice(0, match.index).split('\n').length}`,
    code: match[1] as string,
  }))
}

/** A folder inside of `below`, so that packages are found there as they are by users who have installed them. */
export function workFolder(below: string): { path: string; remove(): void } {
  const cache = join(root, below, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const path = mkdtempSync(join(cache, 'page-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Runs a block in a process of its own, as printed but for `replaced`: the addresses of its servers. */
export async function runBlock(
  { code }: Block,
  below: string,
  replaced: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; output: string }> {
  const folder = workFolder(below)
  try {
    const script = join(folder.path, 'code.mjs')
    const text = Object.entries(replaced).reduce((all, [from, to]) => all.replaceAll(from, to), code)
    writeFileSync(script, text)
    const child = spawn(process.execPath, [script], { cwd: dirname(script), env: { ...process.env, ...env } })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (some: string) => (output += some))
    const ended = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { code: ended, output }
  } finally {
    folder.remove()
  }
}
