import { describe, expect, it } from 'vitest'
import {
  CANCELLED_STATES,
  CLOSERS,
  CodecError,
  END_REASONS,
  ERROR_CODES,
  ERRORS,
  InvalidError,
  Reader,
  UNQUEUE_REASONS,
  type EnumCodec,
  Writer,
} from '../../src/index.js'

describe('words have the numbers that they always had', () => {
  it('error codes, of which all have one', () => {
    expect(ERROR_CODES.numbers).toEqual({
      busy: 1,
      timeout: 2,
      aborted: 3,
      lost: 4,
      'session-ended': 5,
      'not-holder': 6,
      'stale-token': 7,
      'version-conflict': 8,
      mismatch: 9,
      invalid: 10,
      limit: 11,
      unauthenticated: 12,
      forbidden: 13,
      unreachable: 14,
      'no-quorum': 15,
      'unknown-outcome': 16,
      'expired-request': 17,
      gap: 18,
      'epoch-changed': 19,
      storage: 20,
    })
    expect(Object.keys(ERROR_CODES.numbers).sort()).toEqual(Object.keys(ERRORS).sort())
  })

  it('reasons and states', () => {
    expect(END_REASONS.numbers).toEqual({
      released: 1,
      expired: 2,
      closed: 3,
      operator: 4,
      death: 5,
      stolen: 6,
      moved: 7,
    })
    expect(CLOSERS.numbers).toEqual({ owner: 1, operator: 2, death: 3 })
    expect(CANCELLED_STATES.numbers).toEqual({ queued: 1, granted: 2, ended: 3, unknown: 4 })
    expect(UNQUEUE_REASONS.numbers).toEqual({ timeout: 1, cancelled: 2, 'session-ended': 3 })
  })
})

describe('every set of words', () => {
  const sets: [string, EnumCodec<string>][] = [
    ['error codes', ERROR_CODES as EnumCodec<string>],
    ['end reasons', END_REASONS as EnumCodec<string>],
    ['closers', CLOSERS as EnumCodec<string>],
    ['cancelled states', CANCELLED_STATES as EnumCodec<string>],
    ['unqueue reasons', UNQUEUE_REASONS as EnumCodec<string>],
  ]

  it.each(sets)('%s: one byte each, no other word, no other byte', (_, words) => {
    const known = new Map(Object.entries(words.numbers).map(([word, number]) => [number, word]))
    expect(known.size).toBe(Object.keys(words.numbers).length)
    for (let byte = 0; byte < 256; byte++) {
      const reader = new Reader(Uint8Array.of(byte))
      const word = known.get(byte)
      if (word === undefined) {
        expect(() => words.read(reader)).toThrow(CodecError)
      } else {
        expect(words.read(reader)).toBe(word)
        const writer = new Writer()
        words.write(writer, word)
        expect(writer.take()).toEqual(Uint8Array.of(byte))
      }
    }
    for (const word of ['', 'constructor', '__proto__', 'Busy', '1']) {
      expect(() => words.write(new Writer(), word)).toThrow(InvalidError)
    }
  })
})
