import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import { allZero } from './all-zero.js'
import type { Disk } from '../platform.js'
import { damaged, otherFormat } from '../storage/storage-errors.js'
import { decodeBody, FORMAT_VERSION, FRAME_ALIGN, type FrameBody, filler, findFrame, frameAt } from './frame.js'
import { parseSegmentName, type Segment, segmentSeed } from './segment.js'
import { checkTailMarker, readTailMarker } from './tail-marker.js'

/** The bytes of a frame and their offset in the file. */
export interface PlacedFrame {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** The content of the log files. */
export interface Recovered {
  readonly segments: Segment[]
  /** Files that are no longer needed: a crash interrupted their deletion. */
  readonly leftovers: readonly string[]
  /** The sequence number of the next frame. */
  readonly nextSequence: number
  /** The offset of the next frame in the last segment. */
  readonly tail: number
  /** The last segment must be zeroed from `tail` up to here before the next frame; undefined when it is zero already. */
  readonly zeroTo: number | undefined
  /** Where the last frame's filler was cut off; undefined when it is whole. */
  readonly fillFrom: number | undefined
  /** The last frame of each file that has one, by file name, with complete filler. */
  readonly lastFrames: ReadonlyMap<string, PlacedFrame>
  readonly hardState: HardState | undefined
  readonly entries: Entry[]
  readonly base: { readonly index: Index; readonly term: Term } | undefined
}

/**
 * Reads all segments. Drops a torn last frame, which was never acknowledged, since its sync did not return.
 * @throws StorageError that names file and offset when complete data has changed or is missing.
 */
export function recoverLog(disk: Disk, identity: number, snapshotIndex: Index): Recovered {
  const all = disk
    .list()
    .flatMap((name) => parseSegmentName(name) ?? [])
    .sort((a, b) => a.firstSequence - b.firstSequence)
  checkTailMarker(disk, readTailMarker(disk, identity), all)
  const replay = new Replay()
  let segments: Segment[] = []
  const lastFrames = new Map<string, PlacedFrame>()
  let sequence = all[0]?.firstSequence ?? 1
  let end: SegmentEnd = { tail: 0, zeroTo: undefined, fillFrom: undefined, lastFrame: undefined }
  for (const [position, segment] of all.entries()) {
    if (segment.firstSequence > sequence) {
      // A deletion was interrupted: a snapshot covers the missing part, or the check of the beginning fails.
      replay.restart()
      segments = []
      sequence = segment.firstSequence
    } else if (segment.firstSequence < sequence) {
      throw damaged(
        `${disk.path}/${segment.name}`,
        0,
        `its first frame ${segment.firstSequence} is in the file before it too`,
      )
    }
    segments.push(segment)
    const last = position === all.length - 1
    const read = readSegment(disk, identity, segment, sequence, last, replay)
    if (!last && read.sequence === segment.firstSequence) {
      throw damaged(`${disk.path}/${segment.name}`, 0, 'it is empty, and a later file exists')
    }
    sequence = read.sequence
    end = read.end
    if (end.lastFrame) lastFrames.set(segment.name, end.lastFrame)
  }
  checkBeginning(disk, segments[0], replay, snapshotIndex)
  return {
    segments,
    leftovers: all.filter((segment) => !segments.includes(segment)).map((segment) => segment.name),
    nextSequence: sequence,
    tail: end.tail,
    zeroTo: end.zeroTo,
    fillFrom: end.fillFrom,
    lastFrames,
    hardState: replay.hardState,
    entries: replay.entries,
    base: replay.base,
  }
}

interface SegmentEnd {
  readonly tail: number
  readonly zeroTo: number | undefined
  readonly fillFrom: number | undefined
  readonly lastFrame: PlacedFrame | undefined
}

function readSegment(
  disk: Disk,
  identity: number,
  segment: Segment,
  firstSequence: number,
  last: boolean,
  replay: Replay,
): { readonly sequence: number; readonly end: SegmentEnd } {
  const file = `${disk.path}/${segment.name}`
  const bytes = disk.read(segment.name)
  const seed = segmentSeed(identity, segment)
  let sequence = firstSequence
  let fillFrom: number | undefined
  let begin = 0
  let bodyEnd = 0
  let at = 0
  for (;;) {
    const found = frameAt(bytes, seed, at)
    if (found.kind === 'foreign') throw otherFormat(`${file}, from byte ${at} on,`, found.format, FORMAT_VERSION)
    if (found.kind !== 'valid') {
      const zeroTo = checkEnd(file, bytes, seed, at, sequence, last, found.kind === 'bad' ? found : undefined)
      const lastFrame = at === 0 ? undefined : { offset: begin, bytes: filled(bytes.slice(begin, at), bodyEnd - begin) }
      return { sequence, end: { tail: at, zeroTo, fillFrom, lastFrame } }
    }
    if (found.sequence !== sequence) throw damaged(file, at, `frame ${found.sequence} stands where ${sequence} belongs`)
    if (!found.fillerIntact) {
      fillFrom = found.bodyEnd
      if (!last || findFrame(bytes, seed, found.end, sequence + 1) !== undefined) {
        throw damaged(file, at, `the end of frame ${sequence} has changed`)
      }
    }
    let body: FrameBody
    try {
      body = decodeBody(found.body)
    } catch (error) {
      throw damaged(file, at, `frame ${sequence} cannot be read: ${(error as Error).message}`)
    }
    replay.apply(file, at, body)
    for (const entry of body.entries) segment.maxIndex = Math.max(segment.maxIndex, entry.index)
    sequence++
    begin = at
    bodyEnd = found.bodyEnd
    at = found.end
  }
}

/** Restores the filler after a frame's body. */
function filled(frame: Uint8Array, bodyEnd: number): Uint8Array {
  frame.set(filler(frame.length - bodyEnd), bodyEnd)
  return frame
}

/** Checks what follows the last whole frame of a segment. Returns the offset up to which it must be zeroed, if any. */
function checkEnd(
  file: string,
  bytes: Uint8Array,
  seed: number,
  at: number,
  sequence: number,
  last: boolean,
  bad: { readonly torn: boolean; readonly why: string } | undefined,
): number | undefined {
  if (bad === undefined && allZero(bytes, at)) return undefined
  const why = bad?.why ?? 'its header is missing'
  const later = findFrame(bytes, seed, at + FRAME_ALIGN, sequence)
  if (later !== undefined)
    throw damaged(file, at, `frame ${sequence}: ${why}, and a whole frame follows at byte ${later}`)
  if (!last) throw damaged(file, at, `frame ${sequence}: ${why}, and a later file exists`)
  if (bad && !bad.torn) throw damaged(file, at, `frame ${sequence}: ${why}, and it was complete once`)
  let to = bytes.length
  while (to > at && bytes[to - 1] === 0) to--
  return Math.min(bytes.length, Math.ceil(to / FRAME_ALIGN) * FRAME_ALIGN)
}

/** Checks that the first file starts at or before the end of the snapshot. */
function checkBeginning(disk: Disk, first: Segment | undefined, replay: Replay, snapshotIndex: Index): void {
  const reset = replay.base !== undefined && replay.base.index <= snapshotIndex
  if (first === undefined || reset) return
  const begin = replay.base ? replay.base.index + 1 : first.firstIndex
  if (begin > snapshotIndex + 1) {
    const snapshot =
      snapshotIndex === 0 ? 'there is no snapshot' : `the newest whole snapshot ends at entry ${snapshotIndex}`
    throw damaged(`${disk.path}/${first.name}`, 0, `the log begins at entry ${begin}, but ${snapshot}`)
  }
}

/** Rebuilds the log from its frames. */
class Replay {
  entries: Entry[] = []
  hardState: HardState | undefined
  base: { readonly index: Index; readonly term: Term } | undefined

  restart(): void {
    this.entries = []
    this.base = undefined
  }

  apply(file: string, offset: number, body: FrameBody): void {
    if (body.hardState) this.hardState = body.hardState
    if (body.base) {
      this.base = body.base
      this.entries = []
    }
    const first = body.entries[0]
    if (first === undefined) return
    const begin = this.entries[0]?.index ?? (this.base ? this.base.index + 1 : first.index)
    const next = begin + this.entries.length
    if (first.index > next) throw damaged(file, offset, `entry ${first.index} stands where ${next} belongs`)
    if (first.index < begin) this.entries = []
    else this.entries.length = first.index - begin
    for (const entry of body.entries) this.entries.push(entry)
  }
}
