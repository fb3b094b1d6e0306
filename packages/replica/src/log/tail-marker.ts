import type { Disk } from '../platform.js'
import { damaged } from '../storage/storage-errors.js'
import type { Segment } from './segment.js'

const MARK = /^mark-(\d{1,10})-(\d{16})-(\d{1,15})$/

/**
 * An empty file whose name says which log file is the newest, and its size. Without it a newest file that somebody has
 * removed or cut would look like one that was never written, and what was acknowledged in it would be missed by nobody.
 * It follows its file: after a crash it may name the one before.
 */
export interface TailMarker {
  readonly name: string
  /** Sequence number of the first frame of the newest log file; 0: there was none yet. */
  readonly firstSequence: number
  readonly size: number
}

/** The identity is in the name, so that the mark of an earlier life of the folder means nothing. */
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
