import type { Disk } from '../platform.js'
import { damaged } from '../storage/storage-errors.js'
import type { Segment } from './segment.js'

const MARK = /^mark-(\d{1,10})-(\d{16})-(\d{1,15})$/

/**
 * An empty file whose name records the newest log file and its size. Without it, a newest file that was removed or truncated
 * would look as if it had never been written, and the loss of acknowledged entries would go unnoticed. The marker is updated
 * after the file: after a crash, it may name the previous one.
 */
export interface TailMarker {
  readonly name: string
  /** Sequence number of the first frame of the newest log file; 0 when there was none yet. */
  readonly firstSequence: number
  readonly size: number
}

/** Returns a marker. Its name includes the identity, so that markers of an earlier member of the folder are ignored. */
export function tailMarkerOf(identity: number, firstSequence: number, size: number): TailMarker {
  return { name: `mark-${identity}-${String(firstSequence).padStart(16, '0')}-${size}`, firstSequence, size }
}

export function isTailMarker(name: string): boolean {
  return MARK.test(name)
}

export function readTailMarker(disk: Disk, identity: number): TailMarker | undefined {
  let newest: TailMarker | undefined
  for (const name of disk.list()) {
    const match = MARK.exec(name)
    if (!match || Number(match[1]) !== identity) continue
    const mark = { name, firstSequence: Number(match[2]), size: Number(match[3]) }
    if (newest === undefined || mark.firstSequence > newest.firstSequence) newest = mark
  }
  return newest
}

/** @throws StorageError when the newest log file is missing, or has another size than it was made with */
export function checkTailMarker(disk: Disk, mark: TailMarker | undefined, segments: readonly Segment[]): void {
  if (mark === undefined || mark.firstSequence === 0) return
  const marked = segments.find((segment) => segment.firstSequence === mark.firstSequence)
  if (marked === undefined) {
    throw damaged(disk.path, 0, `the newest log file is missing, that of frame ${mark.firstSequence}`)
  }
  const size = disk.size(marked.name)
  if (size < mark.size) throw damaged(`${disk.path}/${marked.name}`, size, `it ends here, and had ${mark.size} bytes`)
}
