import { assert } from './assert.js'

/** Thrown by {@link ByteReader} when bytes end too early or a value is out of range. */
export class FormatError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FormatError'
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })
const TWO_32 = 2 ** 32

/** Writes little-endian numbers, LEB128 varints and byte strings into a growing buffer. */
export class ByteWriter {
  private buffer: Uint8Array
  private view: DataView
  private at = 0

  constructor(capacity = 256) {
    this.buffer = new Uint8Array(capacity)
    this.view = new DataView(this.buffer.buffer)
  }

  get length(): number {
    return this.at
  }

  u8(value: number): void {
    this.reserve(1)
    this.buffer[this.at++] = value
  }

  u32(value: number): void {
    this.reserve(4)
    this.view.setUint32(this.at, value, true)
    this.at += 4
  }

  /** A safe integer ≥ 0 in eight bytes. */
  u53(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, () => `not a safe integer: ${value}`)
    this.u32(value % TWO_32)
    this.u32(Math.floor(value / TWO_32))
  }

  /** A safe integer ≥ 0 in one to eight bytes. */
  varint(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, () => `not a safe integer: ${value}`)
    this.reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.buffer[this.at++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.buffer[this.at++] = rest
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.buffer.set(bytes, this.at)
    this.at += bytes.length
  }

  /** Length, then bytes. */
  bytes(bytes: Uint8Array): void {
    this.varint(bytes.length)
    this.raw(bytes)
  }

  text(text: string): void {
    this.bytes(encoder.encode(text))
  }

  /** `count` bytes of `value`. */
  fill(value: number, count: number): void {
    this.reserve(count)
    this.buffer.fill(value, this.at, this.at + count)
    this.at += count
  }

  setU32(at: number, value: number): void {
    this.view.setUint32(at, value, true)
  }

  /** The bytes so far, without a copy: the writer is not used afterwards. */
  finish(): Uint8Array {
    return this.buffer.subarray(0, this.at)
  }

  private reserve(more: number): void {
    const need = this.at + more
    if (need <= this.buffer.length) return
    const grown = new Uint8Array(Math.max(need, this.buffer.length * 2))
    grown.set(this.buffer.subarray(0, this.at))
    this.buffer = grown
    this.view = new DataView(grown.buffer)
  }
}

/** Reads what {@link ByteWriter} wrote; every step is checked against the end. */
export class ByteReader {
  private readonly view: DataView

  constructor(
    private readonly buffer: Uint8Array,
    private at = 0,
    private readonly end = buffer.length,
  ) {
    this.view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }

  get position(): number {
    return this.at
  }

  get remaining(): number {
    return this.end - this.at
  }

  u8(): number {
    this.need(1)
    return this.buffer[this.at++] as number
  }

  u32(): number {
    this.need(4)
    const value = this.view.getUint32(this.at, true)
    this.at += 4
    return value
  }

  u53(): number {
    const low = this.u32()
    const value = this.u32() * TWO_32 + low
    if (!Number.isSafeInteger(value)) throw new FormatError(`number above 2^53 at byte ${this.at - 8}`)
    return value
  }

  varint(): number {
    let value = 0
    let unit = 1
    for (let i = 0; i < 8; i++) {
      const byte = this.u8()
      value += (byte & 0x7f) * unit
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break
        return value
      }
      unit *= 0x80
    }
    throw new FormatError(`number above 2^53 at byte ${this.at}`)
  }

  /** A view into the buffer, not a copy. */
  raw(length: number): Uint8Array {
    this.need(length)
    const bytes = this.buffer.subarray(this.at, this.at + length)
    this.at += length
    return bytes
  }

  bytes(): Uint8Array {
    return this.raw(this.varint())
  }

  text(): string {
    const bytes = this.bytes()
    try {
      return decoder.decode(bytes)
    } catch {
      throw new FormatError(`text is not UTF-8 at byte ${this.at - bytes.length}`)
    }
  }

  /** Call at the end: left-over bytes are an error. */
  done(): void {
    if (this.at !== this.end) throw new FormatError(`${this.end - this.at} bytes too many at byte ${this.at}`)
  }

  private need(count: number): void {
    if (count > this.end - this.at) throw new FormatError(`bytes end at ${this.end}, ${count} more needed at ${this.at}`)
  }
}

/** Whether `bytes[from, to)` are all zero. */
export function allZero(bytes: Uint8Array, from = 0, to = bytes.length): boolean {
  let i = from
  while (i < to && (bytes.byteOffset + i) % 4 !== 0) if (bytes[i++] !== 0) return false
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset + i, Math.max(0, to - i) >>> 2)
  for (let w = 0; w < words.length; w++) if (words[w] !== 0) return false
  for (i += words.length * 4; i < to; i++) if (bytes[i] !== 0) return false
  return true
}
