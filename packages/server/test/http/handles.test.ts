import type { HoldId, SessionId } from '@leasehold/core'
import { EpochChangedError, InvalidError } from '@leasehold/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatHoldHandle, formatSessionHandle, parseHoldHandle, parseSessionHandle } from '../../src/http/handles.js'

const serial = fc.integer({ min: 1, max: 2 ** 48 - 1 })
const epoch = fc.integer({ min: 1, max: 2 ** 15 - 1 })
const secret = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const session = fc.record({ session: serial.map((id) => id as SessionId), secret })
const hold = fc
  .record({
    hold: serial.map((id) => id as HoldId),
    session: fc.option(session, { nil: undefined }),
    owns: fc.boolean(),
    secret: fc.option(secret, { nil: undefined }),
  })
  .map(({ owns, ...rest }) => ({ ...rest, ownsSession: owns && rest.session !== undefined }))

describe('handles', () => {
  it('round-trip', () => {
    fc.assert(
      fc.property(epoch, session, hold, (at, one, other) => {
        expect(parseSessionHandle(formatSessionHandle(at, one), at)).toEqual(one)
        expect(parseHoldHandle(formatHoldHandle(at, other), at)).toEqual(other)
      }),
    )
  })

  it('of another epoch fail with epoch-changed', () => {
    fc.assert(
      fc.property(epoch, hold, (at, one) => {
        expect(() => parseHoldHandle(formatHoldHandle(at, one), at + 1)).toThrow(EpochChangedError)
      }),
    )
  })

  it('with any character changed, added or removed are invalid, or name another object', () => {
    fc.assert(
      fc.property(hold, fc.nat(), fc.constantFrom('A', '_', '%', '', 'BB'), (one, at, put) => {
        const text = formatHoldHandle(1, one)
        const i = at % text.length
        const changed = text.slice(0, i) + put + text.slice(i + 1)
        if (changed === text) return
        try {
          expect(parseHoldHandle(changed, 1)).not.toEqual(one)
        } catch (error) {
          expect(error instanceof InvalidError || error instanceof EpochChangedError).toBe(true)
        }
      }),
    )
  })

  it('of one kind are rejected as the other, and so is arbitrary text', () => {
    fc.assert(
      fc.property(session, hold, fc.string(), (one, other, text) => {
        expect(() => parseHoldHandle(formatSessionHandle(1, one), 1)).toThrow(InvalidError)
        expect(() => parseSessionHandle(formatHoldHandle(1, other), 1)).toThrow(InvalidError)
        expect(() => parseHoldHandle(text, 1)).toThrow(InvalidError)
        expect(() => parseHoldHandle(`lhh_${text}`, 1)).toThrow(InvalidError)
      }),
    )
  })
})
