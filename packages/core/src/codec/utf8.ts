import { CodecError } from './codec-error.js'

/** Code units per call of `String.fromCharCode`. */
const CHUNK_UNITS = 1024
const UTF8 = 'well-formed UTF-8'

/** Writes `text`, which has no lone surrogates and fits, at `at`. Returns the end. */
export function encodeUtf8(text: string, into: Uint8Array, at: number): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) {
      into[at++] = unit
    } else if (unit < 0x800) {
      into[at++] = 0xc0 | (unit >> 6)
      into[at++] = 0x80 | (unit & 0x3f)
    } else if (unit < 0xd800 || unit > 0xdfff) {
      into[at++] = 0xe0 | (unit >> 12)
      into[at++] = 0x80 | ((unit >> 6) & 0x3f)
      into[at++] = 0x80 | (unit & 0x3f)
    } else {
      const point = 0x10000 + ((unit & 0x3ff) << 10) + (text.charCodeAt(++i) & 0x3ff)
      into[at++] = 0xf0 | (point >> 18)
      into[at++] = 0x80 | ((point >> 12) & 0x3f)
      into[at++] = 0x80 | ((point >> 6) & 0x3f)
      into[at++] = 0x80 | (point & 0x3f)
    }
  }
  return at
}

/**
 * Decodes the bytes from `start` to `end`, which are inside `bytes`.
 * @throws CodecError for anything that {@link encodeUtf8} does not write: over-long forms, surrogates, cut-off sequences
 */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start
  if (length > CHUNK_UNITS) return decodeAny(bytes, start, end)
  // Names are short and ASCII. Made from one list of units they are flat strings, which are fast to hash and compare.
  const units = new Array<number>(length)
  let union = 0
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number
    union |= byte
    units[i] = byte
  }
  return union > 0x7f ? decodeAny(bytes, start, end) : String.fromCharCode.apply(String, units)
}

function decodeAny(bytes: Uint8Array, start: number, end: number): string {
  const units: number[] = []
  let text = ''
  let at = start
  while (at < end) {
    const byte = bytes[at] as number
    if (byte < 0x80) {
      units.push(byte)
      at++
    } else {
      const length = sequenceLength(byte)
      if (length === 0 || at + length > end) throw new CodecError(at, UTF8)
      const point = decodeSequence(bytes, at, length)
      if (point > 0xffff) units.push(0xd7c0 + (point >> 10), 0xdc00 | (point & 0x3ff))
      else units.push(point)
      at += length
    }
    if (units.length >= CHUNK_UNITS) {
      text += String.fromCharCode(...units)
      units.length = 0
    }
  }
  return text + String.fromCharCode(...units)
}

function sequenceLength(first: number): number {
  if (first < 0xc2 || first > 0xf4) return 0
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
}

/** The code point of a sequence of 2 to 4 bytes at `at`. */
function decodeSequence(bytes: Uint8Array, at: number, length: number): number {
  let point = (bytes[at] as number) & (0x7f >> length)
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i] as number
    if ((next & 0xc0) !== 0x80) throw new CodecError(at + i, UTF8)
    point = (point << 6) | (next & 0x3f)
  }
  const wrong =
    length === 3
      ? point < 0x800 || (point >= 0xd800 && point <= 0xdfff)
      : length === 4 && (point < 0x10000 || point > 0x10ffff)
  if (wrong) throw new CodecError(at, UTF8)
  return point
}
