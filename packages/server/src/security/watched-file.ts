import { statSync } from 'node:fs'

const LOOK_EVERY_MS = 1000

/**
 * Calls `changed` when one of the files has changed since the last look, within about a second. It looks at time, size and
 * inode: `rename` over a file counts, and so does a link that is set anew. Keeps no process alive.
 */
export function watchFiles(files: readonly string[], changed: () => void): () => void {
  let last = stampOf(files)
  const timer = setInterval(() => {
    const now = stampOf(files)
    if (now === last) return
    last = now
    changed()
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

function stampOf(files: readonly string[]): string {
  return files
    .map((file) => {
      const stat = statSync(file, { throwIfNoEntry: false })
      return stat === undefined ? 'none' : `${stat.mtimeMs}/${stat.size}/${stat.ino}`
    })
    .join(' ')
}
