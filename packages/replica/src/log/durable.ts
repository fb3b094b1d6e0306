import type { Disk, DiskFile } from '../platform.js'
import { writeFailed } from '../storage/storage-errors.js'
import type { Recovered } from './recovery.js'

const EVIDENCE = new Uint8Array([0xff])
const CLEARED = new Uint8Array([0])

/**
 * Makes durable what was read from the log files, and clears what a torn write left. It must be done before anything is
 * acknowledged or voted on the strength of what was read: a process that was killed between a write and its sync leaves
 * pages that read well, and that a power cut takes away.
 *
 * Which frames can be unsynced: appends run one at a time, each is synced before the next one begins, and a file is only
 * followed by the next after its last append was synced. So of what this code has written, only the last frame of the
 * newest file can be unsynced, and behind it the part of a write that was cut off. An earlier version did not sync at the
 * start, so after it the last frame of the file before the newest can be unsynced as well.
 *
 * Both frames are written again, not only synced: after a failed writeback the system may take a page for clean that never
 * reached the disk, and a sync then does nothing. Writing the same bytes does no harm, since a sector is written whole or not
 * at all, and a process that is killed in here leaves the same frame for the next start to write again.
 *
 * @param newest the last log file, open
 * @throws StorageError when the disk fails; nothing may be started then
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
 * Zeroes what a torn write left, so that it can never be taken for something later. How far it reaches is only known from its
 * last byte, so that one goes last, when the others are known to be zero on the disk: a start that is interrupted, or
 * whose write fails, leaves enough to do it again.
 */
function clear(file: DiskFile, from: number, to: number): void {
  file.writeSync(from, [new Uint8Array(to - from - 1), EVIDENCE])
  file.writeSync(to - 1, [CLEARED])
}
