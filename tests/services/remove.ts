import { existsSync, rmSync } from 'node:fs'

/** Removes a folder in which another process may still create files; Node's own retries do not see new ones. */
export function removeFolder(folder: string): void {
  for (let left = 100; existsSync(folder); left--) {
    try {
      rmSync(folder, { recursive: true })
    } catch (error) {
      if (left === 0) throw error
    }
  }
}
