import { CodecError, crc32, Reader, Writer } from '@leasehold/core'
import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import { allZero } from './all-zero.js'
import { readEntries, writeEntries } from './entry-codec.js'

/**
 * A frame is what one flush writes: one group commit. All numbers are little-endian.
 *
 *     0  magic 'LHFR'                      16  sequence, high half
 *     4  version                           20  checksum of the body, seeded with the header's first 20 bytes
 *     8  length of the body                24  PLAIN, or MASKED: the body is scrambled
 *    12  sequence, low half                28  checksum of the 28 bytes before
 *    32  body, then FILLER up to a multiple of 64, at least 8 bytes of it
 *
 * Both checksums are seeded with the segment's identity, so a frame of another member or another place in the log is never
 * accepted here. The header never crosses a sector. The filler is not zero, so an end that a crash cut off (zero, since files
 * start zeroed) differs from a complete frame with bit rot. For the same reason, a body with a sector's worth of zeros is
 * scrambled: no sector of a complete frame is zero.
 */
export const FRAME_ALIGN = 64
export const FRAME_HEADER = 32
export const FORMAT_VERSION = 1

const SECTOR = 512
const MAGIC = 0x5246484c
const FILLER = 0xa5
const PLAIN = 0xa5a5a5a5
const MASKED = 0x5a5a5a5a
const FILLER_MIN = 8

const HAS_HARD_STATE = 1
const HAS_BASE = 2
const BODY_MARK = 0x80

/** The content of a frame. `entries` replace the log from `entries[0].index` on. */
export interface FrameBody {
  readonly hardState: HardState | undefined
  /** The log restarts after this point, which a snapshot covers; everything before it is void. */
  readonly base: { readonly index: Index; readonly term: Term } | undefined
  readonly entries: readonly Entry[]
}

/** Returns the size in its file of a frame with a body of `length` bytes. */
export function frameExtent(length: number): number {
  return Math.ceil((FRAME_HEADER + length + FILLER_MIN) / FRAME_ALIGN) * FRAME_ALIGN
}

/** Encodes a frame with `writer`, which is reset first. The result is valid until the writer is used again. */
export function encodeFrame(
  seed: number,
  sequence: number,
  frame: FrameBody,
  writer: Writer = new Writer(1024),
): Uint8Array {
  writer.reset()
  writer.raw(filler(FRAME_HEADER))
  writer.u8(BODY_MARK | (frame.hardState ? HAS_HARD_STATE : 0) | (frame.base ? HAS_BASE : 0))
  if (frame.hardState) {
    writer.varuint(frame.hardState.term)
    writer.varuint(frame.hardState.vote)
    writer.varuint(frame.hardState.commit)
  }
  if (frame.base) {
    writer.varuint(frame.base.index)
    writer.varuint(frame.base.term)
  }
  writeEntries(writer, frame.entries)
  const length = writer.length - FRAME_HEADER
  writer.raw(filler(frameExtent(length) - writer.length))
  const body = writer.peek().subarray(FRAME_HEADER, FRAME_HEADER + length)
  const masked = hasZeroSector(body)
  if (masked) mask(body, seed, sequence)
  writer.patchU32(24, masked ? MASKED : PLAIN)
  writer.patchU32(0, MAGIC)
  writer.patchU32(4, FORMAT_VERSION)
  writer.patchU32(8, length)
  writer.patchU32(12, sequence % 2 ** 32)
  writer.patchU32(16, Math.floor(sequence / 2 ** 32))
  const whole = writer.peek()
  writer.patchU32(20, crc32(body, crc32(whole, seed, 0, 20)))
  writer.patchU32(28, crc32(whole, seed, 0, 28))
  return whole
}

export function decodeBody(body: Uint8Array): FrameBody {
  const reader = new Reader(body)
  const flags = reader.u8()
  if ((flags & ~(HAS_HARD_STATE | HAS_BASE)) !== BODY_MARK) throw new CodecError(0, `a kind of frame, not ${flags}`)
  const hardState =
    flags & HAS_HARD_STATE ? { term: reader.varuint(), vote: reader.varuint(), commit: reader.varuint() } : undefined
  const base = flags & HAS_BASE ? { index: reader.varuint(), term: reader.varuint() } : undefined
  const entries = readEntries(reader)
  reader.finish()
  return { hardState, base, entries }
}

/** Returns the bytes between a body and the next frame. */
export function filler(length: number): Uint8Array {
  return length <= FILLERS.length ? FILLERS.subarray(0, length) : new Uint8Array(length).fill(FILLER)
}

/** Never written to. */
const FILLERS = new Uint8Array(FRAME_ALIGN * 2).fill(FILLER)

/** What is at one offset of a segment. */
export type FrameAt =
  | {
      readonly kind: 'valid'
      readonly sequence: number
      readonly body: Uint8Array
      readonly bodyEnd: number
      readonly end: number
      readonly fillerIntact: boolean
    }
  /** A zero header: nothing was written here, or its sector never reached the disk. */
  | { readonly kind: 'blank' }
  /** A valid header of another version of this program: nothing after it can be checked. */
  | { readonly kind: 'foreign'; readonly format: number }
  /** `torn`: possibly the remains of a write that a crash interrupted. Otherwise complete data has changed. */
  | { readonly kind: 'bad'; readonly torn: boolean; readonly why: string }

/** Reads the frame at `offset`, a multiple of {@link FRAME_ALIGN}. Never throws. */
export function frameAt(segment: Uint8Array, seed: number, offset: number): FrameAt {
  if (offset + FRAME_ALIGN > segment.length) return { kind: 'blank' }
  const header = readHeader(segment, seed, offset)
  if (header === undefined) {
    if (allZero(segment, offset, offset + FRAME_HEADER)) return { kind: 'blank' }
    const sectorEnd = Math.min(segment.length, (Math.floor(offset / SECTOR) + 1) * SECTOR)
    return {
      kind: 'bad',
      torn: allZero(segment, offset + FRAME_HEADER, sectorEnd),
      why: 'its header does not match its checksum',
    }
  }
  if (typeof header === 'number') return { kind: 'foreign', format: header }
  const bodyFrom = offset + FRAME_HEADER
  const bodyTo = bodyFrom + header.length
  const end = offset + frameExtent(header.length)
  if (end > segment.length)
    return { kind: 'bad', torn: false, why: `its length ${header.length} leads beyond the file` }
  if (
    crc32(segment.subarray(bodyFrom, bodyTo), crc32(segment.subarray(offset, offset + 20), seed)) !== header.bodyCrc
  ) {
    return { kind: 'bad', torn: looksCut(segment, bodyFrom, bodyTo, end), why: 'its body does not match its checksum' }
  }
  let fillerIntact = true
  for (let i = bodyTo; i < end; i++) if (segment[i] !== FILLER) fillerIntact = false
  const body = segment.slice(bodyFrom, bodyTo)
  if (header.masked) mask(body, seed, header.sequence)
  return { kind: 'valid', sequence: header.sequence, body, bodyEnd: bodyTo, end, fillerIntact }
}

/** Returns the first offset at or after `from` with a valid frame of `sequence` or later; undefined when there is none. */
export function findFrame(segment: Uint8Array, seed: number, from: number, sequence: number): number | undefined {
  for (let offset = from; offset + FRAME_ALIGN <= segment.length; offset += FRAME_ALIGN) {
    if (segment[offset] !== (MAGIC & 0xff)) continue
    const found = frameAt(segment, seed, offset)
    if (found.kind === 'valid' && found.sequence >= sequence) return offset
  }
  return undefined
}

/** Returns the header's content, the version number of another format, or undefined when the header is invalid. */
function readHeader(
  segment: Uint8Array,
  seed: number,
  offset: number,
): { length: number; sequence: number; bodyCrc: number; masked: boolean } | number | undefined {
  const view = new DataView(segment.buffer, segment.byteOffset + offset, FRAME_HEADER)
  if (view.getUint32(0, true) !== MAGIC) return undefined
  if (view.getUint32(28, true) !== crc32(segment.subarray(offset, offset + 28), seed)) return undefined
  const format = view.getUint32(4, true)
  if (format !== FORMAT_VERSION) return format
  const masking = view.getUint32(24, true)
  if (masking !== PLAIN && masking !== MASKED) return undefined
  return {
    length: view.getUint32(8, true),
    sequence: view.getUint32(16, true) * 2 ** 32 + view.getUint32(12, true),
    bodyCrc: view.getUint32(20, true),
    masked: masking === MASKED,
  }
}

/** Whether {@link SECTOR} consecutive bytes are zero, at any alignment. */
function hasZeroSector(bytes: Uint8Array): boolean {
  let run = 0
  for (let i = 0; i < bytes.length; i++) {
    run = bytes[i] === 0 ? run + 1 : 0
    if (run === SECTOR) return true
  }
  return false
}

/** Scrambles or unscrambles a body with a xorshift stream. */
function mask(body: Uint8Array, seed: number, sequence: number): void {
  let state = (seed ^ (sequence % 2 ** 32)) | 1
  for (let i = 0; i < body.length; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    body[i] = (body[i] as number) ^ (state & 0xff)
  }
}

/** Whether a frame looks cut off: a crash leaves zero sectors or a zero end. The header's sector is present. */
function looksCut(segment: Uint8Array, bodyFrom: number, bodyTo: number, end: number): boolean {
  if (allZero(segment, bodyTo, end)) return true
  for (let from = (Math.floor(bodyFrom / SECTOR) + 1) * SECTOR; from < end; from += SECTOR) {
    if (allZero(segment, from, Math.min(end, from + SECTOR))) return true
  }
  return false
}
