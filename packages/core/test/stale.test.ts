import { describe, expect, it } from 'vitest'
import { FLOOR_PER_MS, LATE_MINUTES_MAX, type Serial, StaleTokenError, staleCause, tokenOf } from '../src/index.js'

const COUNTER = 11_800_000_000_000
const token = (epoch: number, counter: number): bigint => tokenOf(epoch, counter as Serial)
const LATE = LATE_MINUTES_MAX * 60_000 * FLOOR_PER_MS

describe('staleCause', () => {
  it.each([
    ['one grant late', token(1, COUNTER), token(1, COUNTER + 1), 'hold-over'],
    ['ten minutes late', token(1, COUNTER), token(1, COUNTER + LATE), 'hold-over'],
    ['more than ten minutes late', token(1, COUNTER), token(1, COUNTER + LATE + 1), 'lower-tokens'],
    ['counting from 1, below a floor', token(1, 33), token(1, COUNTER), 'lower-tokens'],
    ['of before a restore', token(1, COUNTER), token(2, COUNTER + 1), 'hold-over'],
    ['of long before a restore', token(1, COUNTER), token(2, COUNTER + LATE + 1), 'lower-tokens'],
    ['granted after the mark, in a lower epoch', token(1, COUNTER + 1), token(2, COUNTER), 'lower-tokens'],
    ['with the counter of the mark, in a lower epoch', token(1, COUNTER), token(2, COUNTER), 'hold-over'],
  ])('of a token %s', (_what, refused, mark, cause) => {
    expect(staleCause(refused, mark)).toBe(cause)
  })
})

describe('StaleTokenError', () => {
  const hold = 'this hold is over and a later holder has opened the resource'
  const service = 'the lock service was founded again or restored with lower tokens'

  it('shows both tokens whole, and their difference', () => {
    const error = new StaleTokenError('R', 293312004918048n, 293312004918053n)
    expect(error.message).toBe('stale token 293312004918048 for "R": 5 below the mark 293312004918053')
  })

  it('shows epochs that differ instead of a difference', () => {
    const error = new StaleTokenError('R', token(1, 9), token(3, 7))
    expect(error.message).toBe(
      `stale token ${token(1, 9)} for "R": of epoch 1, below the mark ${token(3, 7)} of epoch 3`,
    )
  })

  it('names both causes, the more likely one first', () => {
    const late = new StaleTokenError('R', token(1, COUNTER), token(1, COUNTER + 1)).hint
    expect(late).toMatch(
      new RegExp(`^most likely ${hold}: .*; if new holds are refused as well, ${service}: .*--epoch 2 `),
    )
    const lower = new StaleTokenError('R', token(1, 33), token(2, COUNTER)).hint
    expect(lower).toMatch(new RegExp(`^most likely ${service}: .*--epoch 3 .*; otherwise ${hold}`))
  })

  it('names both causes when the mark is unknown', () => {
    const { hint, message } = new StaleTokenError('R', 33n, undefined)
    expect(message).toBe('stale token 33 for "R": the resource has seen a later token')
    expect(hint).toContain(hold)
    expect(hint).toContain(service)
  })

  it('keeps a hint that came from elsewhere', () => {
    expect(new StaleTokenError('R', 33n, 34n, { hint: 'ask the operator' }).hint).toBe('ask the operator')
  })
})
