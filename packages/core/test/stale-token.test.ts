import { describe, expect, it } from 'vitest'
import { commonPrefix, errorOf, StaleTokenError, tokenOf } from '../src/index.js'

const NOW = 11_837_027_000_000
const at = (epoch: number, counter: number) => tokenOf(epoch, counter as never)
const hintOf = (token: bigint, mark?: bigint) => new StaleTokenError('r', token, mark).hint
const HOLD = /^most likely this hold is over.*founded again or restored with lower tokens/
const SERVICE = /^most likely the lock service was founded again or restored with lower tokens.*this hold is over/

describe('a refusal of a stale token', () => {
  it('names how far the token is below the mark', () => {
    const message = (token: bigint, mark?: bigint) => new StaleTokenError('r', token, mark).message
    expect(message(293312004918048n, 293312004918053n)).toBe(
      'stale token 293312004918048 for "r": it is 5 below the mark 293312004918053',
    )
    expect(message(at(1, 7), at(2, 9))).toMatch(/: it is 1 epoch below the mark 562949953421321$/)
    expect(message(at(1, 7), at(4, 9))).toMatch(/: it is 3 epochs below the mark /)
    expect(message(5n)).toBe('stale token 5 for "r": it is below its mark')
  })

  it('calls the end of the hold likely when the counter is somewhat lower, in the same epoch or an older one', () => {
    expect(hintOf(at(1, NOW), at(1, NOW + 1))).toMatch(HOLD)
    expect(hintOf(at(1, NOW), at(1, NOW + 30 * 86_400_000 * 128))).toMatch(HOLD)
    expect(hintOf(at(1, NOW), at(2, NOW + 1))).toMatch(HOLD)
    expect(hintOf(33n, 34n)).toMatch(HOLD)
    expect(hintOf(3n, 900n)).toMatch(HOLD)
  })

  it('calls lower tokens of the service likely when the counter is far lower, or not lower at all', () => {
    expect(hintOf(at(1, 40), at(1, NOW))).toMatch(SERVICE)
    expect(hintOf(at(1, NOW), at(2, NOW))).toMatch(SERVICE)
    expect(hintOf(at(1, NOW + 1), at(2, NOW))).toMatch(SERVICE)
    expect(hintOf(5n, 1_000_000n)).toMatch(SERVICE)
  })

  it('names both reasons without a mark, and when the error came over a wire without a hint', () => {
    expect(hintOf(5n)).toMatch(/^either this hold is over.*founded again or restored with lower tokens/)
    expect(errorOf('stale-token', '', { resource: 'r', token: 33n, mark: 34n }).hint).toMatch(HOLD)
  })
})

describe('the common prefix of tokens', () => {
  it('is what all of them begin with', () => {
    expect(commonPrefix([293312004918048n, 293312004918053n, 293312004918053n])).toBe('2933120049180')
    expect(commonPrefix([33n, 34n])).toBe('3')
    expect(commonPrefix([33n, 43n])).toBe('')
  })

  it('is empty when nothing differs, or the lengths do', () => {
    expect(commonPrefix([])).toBe('')
    expect(commonPrefix([33n])).toBe('')
    expect(commonPrefix([33n, 33n])).toBe('')
    expect(commonPrefix([33n, 334n])).toBe('')
  })
})
