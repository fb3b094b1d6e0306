import { statSync } from 'node:fs'

const POLL_INTERVAL_MS = 1000

/**
 * Calls `changed` within about a second after one of the files changed. It compares time, size and inode, so that renames
 * over a file and changed symbolic links count. Does not keep the process alive. Returns a function that stops it.
 */
export function watchFiles(files: readonly string[], changed: () => void): () => void {
  let last = stampOf(files)
  const timer = setInterval(() => {
    const now = stampOf(files)
    if (now === last) return
    last = now
    changed()
  }, POLL_INTERVAL_MS)
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
