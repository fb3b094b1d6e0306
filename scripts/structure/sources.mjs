// The source files that the checks of the structure read, with their syntax trees.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'

const SKIPPED = new Set(['node_modules', 'dist', 'testdata', 'data', '.git'])

/** Paths below `folder` that end with one of `endings`, relative to `root` with `/`, sorted. Empty without the folder. */
export function filesBelow(root, folder, endings = ['.ts', '.tsx']) {
  const found = []
  const visit = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) visit(join(path, entry.name))
      if (entry.isFile() && endings.some((ending) => entry.name.endsWith(ending))) found.push(join(path, entry.name))
    }
  }
  try {
    visit(join(root, folder))
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  return found.map((path) => relative(root, path).split(sep).join('/')).sort()
}

/** Reads and parses files. Vite is loaded late: without an installation there is none. */
export async function parseFiles(root, paths) {
  const { parseSync } = await import('vite')
  return paths.map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return parsed(parseSync, path, text)
  })
}

/** One source text, parsed. */
export async function parseText(path, text) {
  const { parseSync } = await import('vite')
  return parsed(parseSync, path, text)
}

function parsed(parseSync, path, text) {
  const { program, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
  return { path, text, program }
}

/** Calls `enter(node, parents)` for each node of a syntax tree, the outermost first. `parents`: nearest last. */
export function walk(node, enter, parents = []) {
  enter(node, parents)
  parents.push(node)
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item?.type === 'string') walk(item, enter, parents)
    } else if (typeof value?.type === 'string') walk(value, enter, parents)
  }
  parents.pop()
}

/** The number of the line at which an offset of the text is, from 1. */
export function lineAt(text, offset) {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}

/** The file that a relative import of `from` means, out of `paths`; undefined for what is none of them. */
export function resolveImport(from, specifier, paths) {
  const target = posix.join(dirname(from), specifier)
  const stem = target.replace(/\.js$/, '')
  return [target, `${stem}.ts`, `${stem}.tsx`].find((path) => paths.has(path))
}
