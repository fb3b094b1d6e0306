import { existsSync, rmSync } from 'node:fs'

/** Removes a folder in which somebody else may be making files; Node's own repeats do not look at what is new. */
export function removeFolder(folder: string): void {
  for (let left = 100; existsSync(folder); left--) {
    try {
      rmSync(folder, { recursive: true })
    } catch (error) {
      if (left === 0) throw error
    }
  }
}
