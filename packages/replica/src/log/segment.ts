import { crc32 } from '@leasehold/core'
import type { Index } from '@leasehold/raft'

const SEGMENT = /^log-(\d{16})-(\d{16})$/

/** A log file, described by its name and content. */
export interface Segment {
  readonly name: string
  /** Sequence number of its first frame. */
  readonly firstSequence: number
  /** The next index when the file was started. */
  readonly firstIndex: Index
  /** Highest index of any entry in the file; `firstIndex − 1` while it has none. */
  maxIndex: Index
}

export function segmentName(firstSequence: number, firstIndex: Index): string {
  return `log-${String(firstSequence).padStart(16, '0')}-${String(firstIndex).padStart(16, '0')}`
}

export function parseSegmentName(name: string): Segment | undefined {
  const match = SEGMENT.exec(name)
  if (!match) return undefined
  const firstIndex = Number(match[2])
  return { name, firstSequence: Number(match[1]), firstIndex, maxIndex: firstIndex - 1 }
}

/** Returns the checksum seed of a segment's frames, so that they are valid only in this member's log and this file. */
export function segmentSeed(identity: number, segment: Segment): number {
  const bytes = new Uint8Array(8)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, segment.firstSequence % 2 ** 32, true)
  view.setUint32(4, Math.floor(segment.firstSequence / 2 ** 32), true)
  return crc32(bytes, identity)
}
