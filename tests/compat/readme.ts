import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

/** The code blocks of a peer's README between two headings (of the first one's level or above), as the package prints them. */
export function readmeBlocks(packageName: string, heading: string): string[] {
  const folder = dirname(
    require.resolve
      .paths(packageName)
      ?.map((base) => join(base, packageName, 'x'))
      .find(exists) ?? '',
  )
  const text = readFileSync(join(folder, 'README.md'), 'utf8').replaceAll('\r\n', '\n')
  const lines = text.split('\n')
  // Headings are written as `## Name`, or as `Name` with a line of dashes below.
  const levelAt = (i: number) => {
    const hashes = /^(#+) /.exec(lines[i] ?? '')?.[1]?.length
    return hashes ?? (/^-{3,}$/.test(lines[i + 1] ?? '') ? 2 : undefined)
  }
  const first = lines.findIndex((line, i) => levelAt(i) !== undefined && line.replace(/^#+ /, '').startsWith(heading))
  if (first < 0) throw new Error(`${packageName}: its README has no heading ${heading}`)
  const level = levelAt(first) as number
  const rest = lines.slice(first + 1)
  const end = rest.findIndex((_, i) => (levelAt(first + 1 + i) ?? Number.POSITIVE_INFINITY) <= level)
  const section = rest.slice(0, end < 0 ? undefined : end).join('\n')
  return [...section.matchAll(/^```(?:js|ts|javascript)\n([\s\S]*?)^```$/gm)].map((match) => match[1] as string)
}

function exists(file: string): boolean {
  try {
    readFileSync(join(dirname(file), 'README.md'))
    return true
  } catch {
    return false
  }
}

/** The code with its lines of import and connection replaced. Every pattern must fit: otherwise the README has changed. */
export function rewritten(code: string, lines: readonly (readonly [RegExp, string])[]): string {
  return lines.reduce((text, [pattern, replacement]) => {
    if (!pattern.test(text)) throw new Error(`the README has no ${pattern}: ${text}`)
    return text.replace(pattern, replacement)
  }, code)
}

const AsyncFunction = (async () => {}).constructor as new (
  ...args: string[]
) => (...values: unknown[]) => Promise<unknown>

/** Runs code with these names in scope; resolves with the functions that it declares at the top. */
export async function runCode(
  code: string,
  scope: Record<string, unknown>,
): Promise<Record<string, () => Promise<void>>> {
  const functions = [...code.matchAll(/^async function (\w+)/gm)].map((match) => match[1] as string)
  const run = new AsyncFunction(...Object.keys(scope), `'use strict'; ${code}\nreturn { ${functions.join(', ')} }`)
  return (await run(...Object.values(scope))) as Record<string, () => Promise<void>>
}
