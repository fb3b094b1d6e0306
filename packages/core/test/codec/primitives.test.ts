import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CodecError,
  InvalidError,
  LimitError,
  Reader,
  WRITER_KEEP_BYTES,
  Writer,
  writeClientMessage,
  writeMode,
  writeSerial,
} from '../../src/index.js'
import { bytes, hex128, text, wholeNumbers } from '../arbitraries.js'

function written(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer(1)
  write(writer)
  return writer.take()
}

function hex(value: Uint8Array): string {
  return Buffer.from(value).toString('hex')
}

function reader(digits: string): Reader {
  return new Reader(new Uint8Array(Buffer.from(digits, 'hex')))
}

function refusal(act: () => unknown): CodecError {
  try {
    act()
  } catch (error) {
    expect(error).toBeInstanceOf(CodecError)
    return error as CodecError
  }
  throw new InvalidError('nothing was refused')
}

describe('numbers', () => {
  it.each<[number, string]>([
    [0, '00'],
    [1, '01'],
    [127, '7f'],
    [128, '8001'],
    [300, 'ac02'],
    [16_383, 'ff7f'],
    [16_384, '808001'],
    [2 ** 28 - 1, 'ffffff7f'],
    [2 ** 28, '8080808001'],
    [2 ** 31, '8080808008'],
    [2 ** 32 - 1, 'ffffffff0f'],
    [2 ** 32, '8080808010'],
    [2 ** 35, '808080808001'],
    [2 ** 48 - 1, 'ffffffffffff3f'],
    [2 ** 49, '8080808080808001'],
    [Number.MAX_SAFE_INTEGER, 'ffffffffffffff0f'],
  ])('varuint %d', (value, digits) => {
    expect(hex(written((w) => w.varuint(value)))).toBe(digits)
    expect(reader(digits).varuint()).toBe(value)
  })

  it('varuint of any size', () => {
    fc.assert(
      fc.property(fc.array(wholeNumbers(), { maxLength: 20 }), (values) => {
        const input = new Reader(written((w) => values.forEach((value) => w.varuint(value))))
        expect(values.map(() => input.varuint())).toEqual(values)
        expect(input.done).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['over-long', '8000', 1, 'the shortest form of a number'],
    ['over-long by more', 'ff808000', 3, 'the shortest form of a number'],
    ['above 2^53-1', 'ffffffffffffff10', 7, 'a number up to 2^53-1'],
    ['of nine bytes', '808080808080808001', 7, 'the end of a number'],
    ['cut off', '80', 1, 'a byte'],
    ['absent', '', 0, 'a byte'],
  ])('a varuint %s is refused', (_, digits, offset, expected) => {
    expect(refusal(() => reader(digits).varuint())).toMatchObject({
      offset,
      expected,
      code: 'invalid',
      name: 'CodecError',
    })
  })

  it('a varuint above its own maximum is refused where it starts', () => {
    const input = reader('00ac02')
    input.u8()
    expect(refusal(() => input.varuint(299))).toMatchObject({ offset: 1, expected: 'a number up to 299, not 300' })
  })

  it('fixed sizes are little-endian', () => {
    const output = written((w) => {
      w.u8(0xab)
      w.u32(0xdeadbeef)
      w.u64(0x0102030405060708n)
      w.bool(true)
      w.bool(false)
    })
    expect(hex(output)).toBe('abefbeadde08070605040302010100')
    const input = new Reader(output)
    expect([input.u8(), input.u32(), input.u64(), input.bool(), input.bool()]).toEqual([
      0xab,
      0xdeadbeef,
      0x0102030405060708n,
      true,
      false,
    ])
    input.finish()
  })

  it('u64 of any value, also after the memory has grown', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 10 }), (values) => {
        const input = new Reader(written((w) => values.forEach((value) => w.u64(value))))
        expect(values.map(() => input.u64())).toEqual(values)
      }),
    )
  })

  it.each<[string, (w: Writer) => void]>([
    ['u8 256', (w) => w.u8(256)],
    ['u8 -1', (w) => w.u8(-1)],
    ['u8 NaN', (w) => w.u8(Number.NaN)],
    ['u8 undefined', (w) => w.u8(undefined as never)],
    ['u32 2^32', (w) => w.u32(2 ** 32)],
    ['u32 1.5', (w) => w.u32(1.5)],
    ['varuint -1', (w) => w.varuint(-1)],
    ['varuint 0.5', (w) => w.varuint(0.5)],
    ['varuint 2^53', (w) => w.varuint(2 ** 53)],
    ['varuint Infinity', (w) => w.varuint(Number.POSITIVE_INFINITY)],
    ['varuint NaN', (w) => w.varuint(Number.NaN)],
    ['varuint text', (w) => w.varuint('7' as never)],
    ['u64 -1', (w) => w.u64(-1n)],
    ['u64 2^64', (w) => w.u64(2n ** 64n)],
    ['u64 of a number', (w) => w.u64(1 as never)],
    ['a lone surrogate', (w) => w.string('a\uD800')],
    ['swapped surrogates', (w) => w.string('\uDC00\uD800')],
    ['a long text with a lone surrogate', (w) => w.string(`${'x'.repeat(500)}\uDFFF`)],
    ['no text', (w) => w.string(7 as never)],
    ['upper-case hex digits', (w) => w.hex128('A'.repeat(32))],
    ['31 hex digits', (w) => w.hex128('a'.repeat(31))],
    ['no hex digits', (w) => w.hex128('g'.repeat(32))],
    ['no hex digit at the end', (w) => w.hex128(`${'0'.repeat(31)}\u0130`)],
    ['a serial above 2^48-1', (w) => writeSerial(w, (2 ** 48) as never)],
    ['-1 permits, which would look like another mode', (w) => writeMode(w, { permits: -1 })],
    ['half a permit', (w) => writeMode(w, { permits: 0.5 })],
    ['an unknown mode', (w) => writeMode(w, 'upgrade' as never)],
    ['no mode', (w) => writeMode(w, undefined as never)],
  ])('%s cannot be written, and leaves nothing behind', (_, write) => {
    const writer = new Writer(1)
    writer.u8(9)
    expect(() => write(writer)).toThrow(InvalidError)
    expect(hex(writer.peek())).toBe('09')
  })
})

describe('text', () => {
  it('any Unicode text, as Node encodes it', () => {
    fc.assert(
      fc.property(text, (value) => {
        const output = written((w) => w.string(value))
        const input = new Reader(output)
        expect(input.count()).toBe(Buffer.byteLength(value))
        expect(hex(output.slice(input.offset))).toBe(Buffer.from(value).toString('hex'))
        expect(new Reader(output).string()).toBe(value)
      }),
      { numRuns: 500 },
    )
  })

  it('long text of every width', () => {
    for (const unit of ['a', 'é', '鍵', '😀', 'ab😀é']) {
      for (const times of [1, 31, 127, 128, 1023, 1024, 1025, 70_000]) {
        const value = unit.repeat(times)
        expect(new Reader(written((w) => w.string(value))).string() === value, `${unit} × ${times}`).toBe(true)
      }
    }
  })

  it('refuses exactly the bytes that a strict decoder refuses', () => {
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const lead = fc.constantFrom(
      0x41,
      0x7f,
      0x80,
      0xbf,
      0xc0,
      0xc1,
      0xc2,
      0xdf,
      0xe0,
      0xed,
      0xef,
      0xf0,
      0xf4,
      0xf5,
      0xff,
    )
    const next = fc.constantFrom(0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0x41)
    const sequence = fc.array(fc.oneof(lead, next, next), { maxLength: 12 }).map((list) => Uint8Array.from(list))
    fc.assert(
      fc.property(sequence, (value) => {
        let expected: string | undefined
        try {
          expected = strict.decode(value)
        } catch {
          expected = undefined
        }
        const input = new Reader(written((w) => w.bytes(value)))
        if (expected === undefined) refusal(() => input.string())
        else expect(input.string()).toBe(expected)
      }),
      { numRuns: 2000 },
    )
  })

  it('names the offset of the malformed byte', () => {
    expect(refusal(() => reader('0461c3a9ff').string()).offset).toBe(4)
    expect(refusal(() => reader(`0e${'61'.repeat(13)}ff`).string()).offset).toBe(14)
    expect(refusal(() => reader('0d61').string())).toMatchObject({
      offset: 0,
      expected: 'a count of items of 1 or more bytes in 1 bytes, not 13',
    })
  })
})

describe('bytes', () => {
  it('any bytes and digits', () => {
    fc.assert(
      fc.property(bytes(600), hex128, bytes(10), (value, digits, rest) => {
        const output = written((w) => {
          w.bytes(value)
          w.hex128(digits)
          w.raw(rest)
        })
        const input = new Reader(output)
        expect(input.bytes()).toEqual(value)
        expect(input.hex128()).toBe(digits)
        expect(input.raw(rest.length)).toEqual(rest)
        input.finish()
      }),
    )
  })

  it('are plain copies, also of a Buffer', () => {
    const source = Buffer.from('0361626300', 'hex')
    const value = new Reader(source).bytes()
    source.fill(0)
    expect(Object.getPrototypeOf(value)).toBe(Uint8Array.prototype)
    expect(hex(value)).toBe('616263')
  })

  it.each<[string, (input: Reader) => unknown]>([
    ['u32', (input) => input.u32()],
    ['u64', (input) => input.u64()],
    ['hex128', (input) => input.hex128()],
    ['raw', (input) => input.raw(2)],
    ['raw of a negative length', (input) => input.raw(-1)],
    ['bytes', (input) => input.bytes()],
    ['string', (input) => input.string()],
    ['bool', (input) => input.bool()],
    ['flags', (input) => input.flags(1)],
    ['finish', (input) => input.finish()],
  ])('%s refuses one byte of 2', (_, read) => {
    expect(refusal(() => read(reader('02'))).offset).toBeLessThanOrEqual(1)
  })

  it('reads only its own range', () => {
    const input = new Reader(Uint8Array.of(1, 2, 3, 4), 1, 3)
    expect([input.offset, input.remaining, input.u8(), input.u8(), input.done]).toEqual([1, 2, 2, 3, true])
    expect(() => input.u8()).toThrow(CodecError)
    expect(() => new Reader(new Uint8Array(2), 0, 3)).toThrow(CodecError)
  })
})

describe('a writer', () => {
  it('truncates and patches what it has, and nothing else', () => {
    const writer = new Writer(2)
    writer.u32(0)
    writer.string('abc')
    writer.patchU32(0, writer.length)
    expect(hex(writer.take())).toBe('0800000003616263')
    writer.truncate(4)
    expect(hex(writer.take())).toBe('08000000')
    expect(() => writer.patchU32(1, 1)).toThrow(InvalidError)
    expect(() => writer.patchU32(-1, 1)).toThrow(InvalidError)
    expect(() => writer.truncate(5)).toThrow(InvalidError)
    expect(() => writer.truncate(-1)).toThrow(InvalidError)
  })

  it('hands out copies by take, and its memory by peek', () => {
    const writer = new Writer()
    writer.u8(1)
    const [taken, peeked] = [writer.take(), writer.peek()]
    writer.reset()
    writer.u8(2)
    expect([taken[0], peeked[0], writer.length]).toEqual([1, 2, 1])
  })

  it('stops at its limit with what it had', () => {
    const writer = new Writer(4, 10)
    writer.raw(new Uint8Array(8))
    expect(() => writer.u32(1)).toThrow(LimitError)
    expect(writer.length).toBe(8)
    writer.raw(new Uint8Array(2))
    expect(() => writer.u8(1)).toThrow(/11 bytes to write, at most 10/)
  })

  it('can be filled to its limit with short numbers', () => {
    const writer = new Writer(1, 3)
    for (const value of [1, 2, 3]) writer.varuint(value)
    expect(hex(writer.take())).toBe('010203')
    expect(() => writer.varuint(4)).toThrow(LimitError)
  })

  it('gives large memory back', () => {
    const writer = new Writer()
    writer.raw(new Uint8Array(3 * WRITER_KEEP_BYTES))
    writer.reset()
    expect(writer.peek().buffer.byteLength).toBe(WRITER_KEEP_BYTES)
    writer.u64(5n)
    expect(hex(writer.take())).toBe('0500000000000000')
  })

  it('keeps the messages before one that cannot be written', () => {
    const writer = new Writer()
    writeClientMessage(writer, { kind: 'ping', correlation: 1 })
    const broken = { kind: 'get', correlation: 2, key: 'a\uD800', stale: false } as const
    expect(() => writeClientMessage(writer, broken)).toThrow(InvalidError)
    expect(() => writeClientMessage(writer, { kind: 'pong' } as never)).toThrow(/not a kind of message: "pong"/)
    writeClientMessage(writer, { kind: 'ping', correlation: 3 })
    expect(hex(writer.take())).toBe('08010000000803000000')
  })
})
