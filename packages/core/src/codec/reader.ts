import { CodecError } from './codec-error.js'
import { decodeUtf8 } from './utf8.js'

const NOTHING = new Uint8Array(0)
/** Up to this length bytes are copied one by one, which costs less than a view. */
const SHORT = 64
const DIGITS = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))

/**
 * Reads what a {@link Writer} wrote. Every value has exactly one encoding. Lengths and counts are checked against the rest of
 * the input before anything is allocated. Results are copies: the input may be reused afterwards.
 *
 * Every method throws `CodecError` with the offset if the bytes are malformed.
 */
export class Reader {
  readonly #input: Uint8Array
  #at: number
  readonly #end: number

  constructor(input: Uint8Array, start = 0, end = input.length) {
    if (!(start >= 0 && start <= end && end <= input.length)) {
      throw new CodecError(start, `a range within ${input.length} bytes, not ${start}…${end}`)
    }
    this.#input = input
    this.#at = start
    this.#end = end
  }

  get offset(): number {
    return this.#at
  }

  get remaining(): number {
    return this.#end - this.#at
  }

  /** Whether everything has been read. */
  get done(): boolean {
    return this.#at === this.#end
  }

  /** Checks that everything has been read. */
  finish(): void {
    if (this.#at !== this.#end) throw this.wrong(`the end, not ${this.remaining} more bytes`)
  }

  /** Returns the error for the bytes at `offset`, for the caller to throw. */
  wrong(expected: string, offset = this.#at): CodecError {
    return new CodecError(offset, expected)
  }

  u8(): number {
    if (this.#at >= this.#end) throw this.wrong('a byte')
    return this.#input[this.#at++] as number
  }

  u32(): number {
    this.#need(4)
    const input = this.#input
    const at = this.#at
    this.#at = at + 4
    return (
      ((input[at] as number) |
        ((input[at + 1] as number) << 8) |
        ((input[at + 2] as number) << 16) |
        ((input[at + 3] as number) << 24)) >>>
      0
    )
  }

  /** A whole number up to `max`. */
  varuint(max: number = Number.MAX_SAFE_INTEGER): number {
    const start = this.#at
    const byte = this.u8()
    const value = byte < 0x80 ? byte : this.#longVaruint(byte & 0x7f)
    if (value > max) throw this.wrong(`a number up to ${max}, not ${value}`, start)
    return value
  }

  u64(): bigint {
    const low = this.u32()
    return (BigInt(this.u32()) << 32n) | BigInt(low)
  }

  bool(): boolean {
    return this.choice(1, 'a boolean') === 1
  }

  /** A byte of at most `max`. */
  choice(max: number, expected: string): number {
    const value = this.u8()
    if (value > max) throw this.wrong(`${expected}, not ${value}`, this.#at - 1)
    return value
  }

  /** A byte of flags, of which only those in `known` may be set. */
  flags(known: number): number {
    const value = this.u8()
    if ((value & ~known) !== 0) throw this.wrong(`flags among ${known}, not ${value}`, this.#at - 1)
    return value
  }

  /** The number of items that follow, each of which takes at least `bytesEach` bytes (1 or more). */
  count(bytesEach = 1): number {
    const start = this.#at
    const count = this.varuint()
    if (count * bytesEach > this.remaining) {
      throw this.wrong(`a count of items of ${bytesEach} or more bytes in ${this.remaining} bytes, not ${count}`, start)
    }
    return count
  }

  string(): string {
    const length = this.count()
    const start = this.#at
    this.#at = start + length
    return decodeUtf8(this.#input, start, this.#at)
  }

  bytes(): Uint8Array {
    return this.raw(this.count())
  }

  /** The next `length` bytes, copied. */
  raw(length: number): Uint8Array {
    if (length === 0) return NOTHING
    this.#need(length)
    const start = this.#at
    this.#at = start + length
    // A Buffer's own slice() would share memory with the input.
    const copy = new Uint8Array(length)
    if (length > SHORT) copy.set(this.#input.subarray(start, this.#at))
    else for (let i = 0; i < length; i++) copy[i] = this.#input[start + i] as number
    return copy
  }

  /** Skips `expected` if these are the next bytes. Returns whether they are. */
  skip(expected: Uint8Array): boolean {
    this.#need(expected.length)
    const input = this.#input
    const at = this.#at
    for (let i = 0; i < expected.length; i++) if (input[at + i] !== expected[i]) return false
    this.#at = at + expected.length
    return true
  }

  /** 16 bytes as 32 lower-case hex digits. */
  hex128(): string {
    return this.#hex64() + this.#hex64()
  }

  #hex64(): string {
    this.#need(8)
    const start = this.#at
    this.#at = start + 8
    const digit = (i: number) => {
      const byte = this.#input[start + (i >> 1)] as number
      return DIGITS[i & 1 ? byte & 15 : byte >> 4] as number
    }
    return String.fromCharCode(
      digit(0),
      digit(1),
      digit(2),
      digit(3),
      digit(4),
      digit(5),
      digit(6),
      digit(7),
      digit(8),
      digit(9),
      digit(10),
      digit(11),
      digit(12),
      digit(13),
      digit(14),
      digit(15),
    )
  }

  #need(length: number): void {
    if (!(length >= 0 && length <= this.#end - this.#at)) throw this.wrong(`${length} bytes, not ${this.remaining}`)
  }

  /** Reads the rest of a number of two to eight bytes, whose first one has the low bits `value`. */
  #longVaruint(value: number): number {
    let scale = 128
    for (let i = 1; i < 8; i++) {
      const byte = this.u8()
      if (byte < 0x80) {
        value += byte * scale
        if (byte === 0) throw this.wrong('the shortest form of a number', this.#at - 1)
        if (value > Number.MAX_SAFE_INTEGER) throw this.wrong('a number up to 2^53-1', this.#at - 1)
        return value
      }
      value += (byte & 0x7f) * scale
      scale *= 128
    }
    throw this.wrong('the end of a number', this.#at - 1)
  }
}
