// File names of a package that a reader would confuse.
import { basename, dirname } from 'node:path/posix'

const stemOf = (path) => basename(path).replace(/\.[jt]sx?$/, '')

/**
 * Files of one package with the same name in different folders, and files whose names differ only by a plural `s`. Not
 * `index`, and not the same name in folders that lie directly in those of `alike`. Returns the key and the files of each group.
 */
export function confusableNames(paths, alike = new Set()) {
  const byStem = new Map()
  for (const path of paths) byStem.set(stemOf(path), [...(byStem.get(stemOf(path)) ?? []), path])
  const found = []
  for (const [stem, files] of byStem) {
    if (files.length > 1 && stem !== 'index' && !areAlike(files, alike)) found.push({ key: stem, files })
    const singular = byStem.get(stem.slice(0, -1))
    if (stem.endsWith('s') && singular !== undefined) {
      found.push({ key: `${stem.slice(0, -1)}/${stem}`, files: [...singular, ...files] })
    }
  }
  return found
}

function areAlike(files, alike) {
  return files.every((path) => alike.has(dirname(dirname(path))))
}
