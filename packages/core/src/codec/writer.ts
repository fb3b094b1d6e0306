import { InvalidError, LimitError } from '../errors.js'
import { utf8Length } from '../names.js'
import { encodeUtf8 } from './utf8.js'

/** Default limit of a writer, in bytes. */
export const WRITER_BYTES_MAX = 2 ** 30
/** `reset()` shrinks the buffer of a writer to this size. */
export const WRITER_KEEP_BYTES = 2 ** 20
const VARUINT_BYTES_MAX = 8

/**
 * A growing byte buffer. A value out of range throws `InvalidError`, and more than `limit` bytes throw `LimitError`; nothing of
 * the value is written then.
 *
 * @example
 * const writer = new Writer()
 * writer.varuint(300)
 * writer.string('billing')
 * const bytes = writer.take()
 * writer.reset()
 */
export class Writer {
  #buffer: Uint8Array
  #end = 0
  readonly #limit: number

  constructor(capacity = 256, limit = WRITER_BYTES_MAX) {
    this.#buffer = new Uint8Array(Math.min(capacity, limit))
    this.#limit = limit
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#end
  }

  /** Empties the writer and keeps its buffer for the next use. */
  reset(): void {
    this.#end = 0
    if (this.#buffer.length > WRITER_KEEP_BYTES) this.#buffer = new Uint8Array(WRITER_KEEP_BYTES)
  }

  /** Drops everything after the first `length` bytes. */
  truncate(length: number): void {
    if (!(length >= 0 && length <= this.#end)) throw new InvalidError(`truncate to ${length} of ${this.#end} bytes`)
    this.#end = length
  }

  /** Returns a copy of the written bytes. */
  take(): Uint8Array {
    return this.#buffer.slice(0, this.#end)
  }

  /** Returns a view of the written bytes, which is valid until the next write or reset. */
  peek(): Uint8Array {
    return this.#buffer.subarray(0, this.#end)
  }

  u8(value: number): void {
    if ((value & 0xff) !== value) throw outOfRange(value, 0xff)
    this.#ensure(1)
    this.#buffer[this.#end++] = value
  }

  /** Four bytes, little-endian. */
  u32(value: number): void {
    this.#ensure(4)
    this.#put32(this.#end, value)
    this.#end += 4
  }

  /** Overwrites four bytes, such as a length or checksum that was unknown when they were written. */
  patchU32(offset: number, value: number): void {
    if (!(offset >= 0 && offset + 4 <= this.#end)) throw new InvalidError(`patch at ${offset} of ${this.#end} bytes`)
    this.#put32(offset, value)
  }

  /** A whole number up to 2^53 − 1 in as few bytes as it needs: seven bits each, least significant first. */
  varuint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw outOfRange(value, Number.MAX_SAFE_INTEGER)
    if (this.#end + VARUINT_BYTES_MAX > this.#buffer.length) this.#ensure(varuintBytes(value))
    const buffer = this.#buffer
    let rest = value
    if (value >>> 0 !== value) {
      while (rest > 0xfffffff) {
        buffer[this.#end++] = (rest % 128) | 0x80
        rest = Math.floor(rest / 128)
      }
    }
    while (rest > 0x7f) {
      buffer[this.#end++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    buffer[this.#end++] = rest
  }

  /** Eight bytes, little-endian. */
  u64(value: bigint): void {
    if (typeof value !== 'bigint' || value < 0n || value >= 2n ** 64n) {
      throw new InvalidError(`a bigint between 0 and 2^64-1, not ${typeof value} ${String(value)}`)
    }
    this.#ensure(8)
    this.u32(Number(value & 0xffffffffn))
    this.u32(Number(value >> 32n))
  }

  bool(value: boolean): void {
    this.u8(value ? 1 : 0)
  }

  /** Length in bytes, then UTF-8. Lone surrogates throw, because they have no UTF-8. */
  string(text: string): void {
    if (typeof text !== 'string') throw new InvalidError(`a string, not ${typeof text}`)
    const units = text.length
    if (units > 0x7f) return this.#longString(text)
    this.#ensure(units + 1)
    const buffer = this.#buffer
    let at = this.#end
    buffer[at++] = units
    for (let i = 0; i < units; i++) {
      const unit = text.charCodeAt(i)
      if (unit > 0x7f) return this.#longString(text)
      buffer[at++] = unit
    }
    this.#end = at
  }

  /** Length, then the bytes. */
  bytes(value: Uint8Array): void {
    this.#ensure(varuintBytes(value.length) + value.length)
    this.varuint(value.length)
    this.raw(value)
  }

  /** The bytes alone. */
  raw(value: Uint8Array): void {
    this.#ensure(value.length)
    this.#buffer.set(value, this.#end)
    this.#end += value.length
  }

  /** 32 lower-case hex digits as 16 bytes. */
  hex128(digits: string): void {
    if (typeof digits !== 'string' || digits.length !== 32) throw notHex()
    this.#ensure(16)
    const buffer = this.#buffer
    const start = this.#end
    for (let i = 0; i < 16; i++) {
      const high = nibble(digits.charCodeAt(2 * i))
      const low = nibble(digits.charCodeAt(2 * i + 1))
      if ((high | low) < 0) throw notHex()
      buffer[start + i] = (high << 4) | low
    }
    this.#end = start + 16
  }

  #put32(offset: number, value: number): void {
    if (value >>> 0 !== value) throw outOfRange(value, 0xffffffff)
    const buffer = this.#buffer
    buffer[offset] = value
    buffer[offset + 1] = value >>> 8
    buffer[offset + 2] = value >>> 16
    buffer[offset + 3] = value >>> 24
  }

  #longString(text: string): void {
    const length = utf8Length(text)
    if (length < 0) throw new InvalidError('text is valid Unicode, without lone surrogates')
    this.#ensure(varuintBytes(length) + length)
    this.varuint(length)
    this.#end = encodeUtf8(text, this.#buffer, this.#end)
  }

  #ensure(more: number): void {
    if (this.#end + more > this.#buffer.length) this.#grow(this.#end + more)
  }

  #grow(needed: number): void {
    if (needed > this.#limit) throw new LimitError(`${needed} bytes to write, at most ${this.#limit}`)
    const grown = new Uint8Array(Math.min(this.#limit, Math.max(needed, 2 * this.#buffer.length)))
    grown.set(this.#buffer.subarray(0, this.#end))
    this.#buffer = grown
  }
}

/** The number of bytes of `varuint(value)`. */
function varuintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/** The value of a lower-case hex digit by its character code; −1 for any other character. */
function nibble(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1
}

function outOfRange(value: unknown, max: number): InvalidError {
  return new InvalidError(`a whole number between 0 and ${max}, not ${String(value)}`)
}

function notHex(): InvalidError {
  // The digits may be a secret, so they are not in the message.
  return new InvalidError('32 lower-case hex digits')
}
