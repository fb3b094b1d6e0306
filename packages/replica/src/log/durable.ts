import type { Disk, DiskFile } from '../platform.js'
import { writeFailed } from '../storage/storage-errors.js'
import type { Recovered } from './recovery.js'

const EVIDENCE = new Uint8Array([0xff])
const CLEARED = new Uint8Array([0])

/**
 * Makes the frames that were read durable, and clears the remains of a torn write. Required before the member acknowledges or
 * votes based on the log: a process that was killed between a write and its sync leaves readable pages that a power failure
 * can lose.
 *
 * Which frames can be unsynced: appends run one at a time, each is synced before the next begins, and a new file starts only
 * after the last append to the old one was synced. So this code can leave only the last frame of the newest file unsynced, and
 * after it part of an interrupted write. An earlier version did not sync at the start; it may have left the last frame of the
 * previous file unsynced as well.
 *
 * Both frames are rewritten, not only synced: after a failed writeback the system may treat a page as clean that never reached
 * the disk, and a sync then does nothing. Rewriting the same bytes is harmless, since a sector is written whole or not at all,
 * and a process that is killed here leaves the same frame for the next start to rewrite.
 *
 * @param newest the last log file, open
 * @throws StorageError when the disk fails; the member must not start then
 */
export function makeDurable(disk: Disk, recovered: Recovered, newest: DiskFile): void {
  const { segments, lastFrames, tail, zeroTo } = recovered
  for (const { name } of segments.slice(-2)) {
    const last = lastFrames.get(name)
    if (!last) continue
    const file = name === newest.name ? newest : disk.open(name)
    try {
      file.writeSync(last.offset, [last.bytes])
    } catch (error) {
      throw writeFailed(`${disk.path}/${name}`, error)
    } finally {
      if (file !== newest) file.close()
    }
  }
  if (zeroTo === undefined || zeroTo <= tail) return
  try {
    clear(newest, tail, zeroTo)
  } catch (error) {
    throw writeFailed(`${disk.path}/${newest.name}`, error)
  }
}

/**
 * Zeroes the remains of a torn write, so that they are never mistaken for a later frame. Only the last nonzero byte shows how
 * far they reach, so it is cleared last, after the others are durably zero: an interrupted or failed start can repeat this.
 */
function clear(file: DiskFile, from: number, to: number): void {
  file.writeSync(from, [new Uint8Array(to - from - 1), EVIDENCE])
  file.writeSync(to - 1, [CLEARED])
}
