import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodecError, decodeClientMessages, decodeCommand, decodeServerMessages, Reader } from '../../src/index.js'
import { CODECS, type Codec, encode } from './codecs.js'

/**
 * Reads `bytes`: either they are refused with a CodecError, or they are exactly what the value read from them is written
 * as, so that no value has two forms. Returns whether they were read. Runs often: plain comparisons, no `expect`.
 */
function readsOrRefuses(codec: Codec<unknown>, bytes: Uint8Array): boolean {
  const reader = new Reader(bytes)
  let value: unknown
  try {
    value = codec.read(reader)
  } catch (error) {
    if (error instanceof CodecError && error.offset >= 0 && error.offset <= bytes.length) return false
    throw error
  }
  const again = encode(codec, value)
  if (Buffer.compare(again, bytes.subarray(0, reader.offset)) === 0) return true
  expect(again, 'a second form of the same value').toEqual(bytes.slice(0, reader.offset))
  return false
}

/** Bytes that get further than random ones: small numbers and flags are frequent in real input. */
const noise = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .array(fc.oneof(fc.nat({ max: 15 }), fc.nat({ max: 255 })), { maxLength: 200 })
    .map((list) => Uint8Array.from(list)),
)

describe('malformed bytes are refused, and nothing else happens', () => {
  it.each(CODECS)('$name from noise', (codec) => {
    fc.assert(
      fc.property(noise, (bytes) => void readsOrRefuses(codec, bytes)),
      { numRuns: 300 },
    )
  })

  it.each(CODECS)('$name cut off at every byte', (codec) => {
    fc.assert(
      fc.property(codec.values, (value) => {
        const bytes = encode(codec, value)
        for (let length = 0; length < bytes.length; length++) {
          const read = readsOrRefuses(codec, bytes.subarray(0, length))
          if (read) expect(length, `what was read of ${bytes.length} bytes`).toBe(bytes.length)
        }
      }),
      { numRuns: 25 },
    )
  })

  it.each(CODECS)('$name with a flipped bit', (codec) => {
    fc.assert(
      fc.property(codec.values, fc.nat(), (value, seed) => {
        const bytes = encode(codec, value)
        const bits = 8 * bytes.length
        // Every bit of a short value, some of a long one.
        for (let bit = seed % 8; bit < bits; bit += Math.ceil(bits / 400)) {
          bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
          readsOrRefuses(codec, bytes)
          bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
        }
      }),
      { numRuns: 15 },
    )
  })

  it.each(CODECS)('$name with a byte replaced by an extreme', (codec) => {
    fc.assert(
      fc.property(codec.values, fc.nat(), fc.constantFrom(0, 0x7f, 0x80, 0xff), (value, at, byte) => {
        const bytes = encode(codec, value)
        bytes[at % bytes.length] = byte
        readsOrRefuses(codec, bytes)
      }),
      { numRuns: 100 },
    )
  })

  // What is absent when it is nothing may not be there as nothing: a second form of the same acquire.
  it.each([
    ['a lock delay of 0', [4, 8, 1, 1, 0, 0, 0, 0, 0], 8],
    ['owner data of no bytes', [4, 32, 1, 1, 0, 0, 0, 0, 0], 8],
    ['a flag that does not exist', [4, 64, 1, 1, 0, 0, 0, 0], 1],
  ])('an acquire with %s', (_, bytes, offset) => {
    const refuse = () => decodeCommand(Uint8Array.from(bytes))
    expect(refuse).toThrow(CodecError)
    expect(refuse).toThrow(expect.objectContaining({ offset }))
  })

  it('frames of noise', () => {
    fc.assert(
      fc.property(noise, (bytes) => {
        for (const decodeFrame of [decodeClientMessages, decodeServerMessages]) {
          try {
            decodeFrame(bytes)
          } catch (error) {
            expect(error).toBeInstanceOf(CodecError)
          }
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('memory is bounded by the input', () => {
  const huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]

  it.each([
    ['an entry with 2^53-1 commands', 'entry', [0, ...huge]],
    ['a renewal with 2^53-1 changes', 'result', [2, ...huge]],
    ['a put with a key of 2^53-1 bytes', 'command', [9, 0, ...huge]],
    ['a put with a value of 2^53-1 bytes', 'command', [9, 0, 0, ...huge]],
    ['a query result with 2^53-1 holds', 'query result', huge],
    ['an ack of 2^53-1 numbers', 'ack', [0, ...huge]],
  ])('%s', (_, name, bytes) => {
    const codec = CODECS.find((one) => one.name === name) as Codec<unknown>
    const before = process.memoryUsage()
    for (let i = 0; i < 1000; i++) expect(() => codec.read(new Reader(Uint8Array.from(bytes)))).toThrow(CodecError)
    const after = process.memoryUsage()
    expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(64 * 2 ** 20)
  })

  it('a count is held against what is left before the first item is read', () => {
    const bytes = new Uint8Array(1 << 16)
    bytes.set([0, 0xff, 0xff, 0x03])
    let reads = 0
    const reader = new Reader(bytes)
    reader.varuint()
    expect(() => {
      for (let left = reader.count(2); left > 0; left--) reads++
    }).toThrow(/expected a count of items of 2 or more bytes in 65532 bytes, not 65535/)
    expect(reads).toBe(0)
  })
})
