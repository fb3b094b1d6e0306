// Deletes outputs of the compiler whose sources are gone: `tsc -b` leaves them, and they would be published.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'

const OUTPUT = /\.(?:js|d\.ts)(?:\.map)?$/
/** Folders in dist/ that bundlers write. */
const BUNDLED = new Set(['console', 'page', 'page-modules'])

/** The stale outputs of all packages below `root`. */
export function staleOutputs(root) {
  const packages = join(root, 'packages')
  return readdirSync(packages).flatMap((name) => {
    const dist = join(packages, name, 'dist')
    if (!existsSync(dist)) return []
    return readdirSync(dist, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && OUTPUT.test(entry.name))
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .filter((file) => isStale(relative(dist, file), join(packages, name, 'src')))
  })
}

function isStale(output, sources) {
  if (BUNDLED.has(output.split(/[\\/]/)[0])) return false
  if (output.endsWith('.map')) return true
  const stem = join(sources, output.replace(OUTPUT, ''))
  return !['.ts', '.tsx'].some((extension) => existsSync(stem + extension))
}

/** Deletes the stale outputs of all packages below `root`. */
export function removeStaleOutputs(root) {
  for (const file of staleOutputs(root)) rmSync(file, { force: true })
}
