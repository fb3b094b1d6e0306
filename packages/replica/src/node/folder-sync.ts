import * as fs from 'node:fs'
import { dirname } from 'node:path'

/** What a folder above ours may answer that cannot be opened or synced: it is not ours to look after. */
const NOT_OURS: readonly unknown[] = ['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'EROFS']

/** Makes what was created, renamed or removed in a folder durable. */
export function syncFolder(folder: string): void {
  // Windows cannot open a folder for syncing, and journals renames by itself.
  if (process.platform === 'win32') return
  const fd = fs.openSync(folder, 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/**
 * Makes a folder's own name durable, and the names of all folders above it in its file system. Also when this process has not
 * made any of them: the one that has may have been killed before it could sync them.
 */
export function syncPath(folder: string): void {
  if (process.platform === 'win32') return
  const path = fs.realpathSync(folder)
  const { dev } = fs.statSync(path)
  for (let below = path, at = dirname(path); at !== below; below = at, at = dirname(at)) {
    try {
      if (fs.statSync(at).dev !== dev) return
      syncFolder(at)
    } catch (error) {
      if (!NOT_OURS.includes((error as NodeJS.ErrnoException).code)) throw error
    }
  }
}

/** Makes a folder that only its owner may read, if it is not there, and its name durable in any case. */
export function makeFolder(dir: string): void {
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  syncPath(dir)
}
