import * as fs from 'node:fs'
import { dirname } from 'node:path'

/** Errors of parent folders that cannot be opened or synced. They belong to others, so the errors are ignored. */
const NOT_OURS: readonly unknown[] = ['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'EROFS']

/** Makes creations, renames and removals in a folder durable. */
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
 * Makes a folder's name durable, and the names of all its parents in the same file system. Also syncs folders that another
 * process created: it may have been killed before it could sync them.
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

/** Creates a folder with access for its owner only, unless it exists, and makes its name durable. */
export function makeFolder(dir: string): void {
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  syncPath(dir)
}
