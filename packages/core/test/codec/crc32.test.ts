import * as zlib from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32, joinedCrc32 } from '../../src/index.js'

/** Node has its own only since 20.15. */
const native = (zlib as unknown as { crc32?: (data: Uint8Array, seed?: number) => number }).crc32

/** Bit by bit, straight from the definition. */
function byDefinition(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}

describe('crc32', () => {
  it('has the check value of its definition', () => {
    expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926)
    expect(crc32(new Uint8Array(0))).toBe(0)
  })

  it('agrees with the definition for every length and alignment', () => {
    const bytes = Uint8Array.from({ length: 70 }, (_, i) => (i * 167 + 13) & 0xff)
    for (let start = 0; start < 9; start++) {
      for (let end = start; end <= bytes.length; end++) {
        const part = bytes.subarray(start, end)
        expect(crc32(part), `${start}…${end}`).toBe(byDefinition(part))
      }
    }
  })

  it('continues from a seed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat({ max: 100 }), (bytes, at) => {
        expect(crc32(bytes.subarray(at), crc32(bytes.subarray(0, at)))).toBe(crc32(bytes))
      }),
    )
  })
})

describe('joined checksums', () => {
  it('are those of the parts together', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (a, b) => {
        expect(joinedCrc32(crc32(a), crc32(b), b.length)).toBe(crc32(Buffer.concat([a, b])))
      }),
    )
  })

  it('of long parts too', () => {
    const [a, b] = [new Uint8Array(70_001).fill(7), new Uint8Array(3_000_017).fill(9)]
    expect(joinedCrc32(crc32(a), crc32(b), b.length)).toBe(crc32(b, crc32(a)))
  })
})

describe.skipIf(native === undefined)('crc32 against zlib.crc32 (Node 20.15 or later)', () => {
  it('agrees, with any seed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 2 ** 32 - 1 }), (bytes, seed) => {
        expect(crc32(bytes)).toBe(native?.(bytes))
        expect(crc32(bytes, seed)).toBe(native?.(bytes, seed))
      }),
      { numRuns: 500 },
    )
  })
})
