import { describe, expect, it } from 'vitest'
import { sharedDigits } from '../src/index.js'

describe('sharedDigits', () => {
  it.each([
    ['tokens that differ late', ['293253841305472', '293253841305477', '293253841306001'], 11],
    ['tokens that differ at once', ['193253841305472', '293253841305472'], 0],
    ['tokens of which only the last digit differs', ['10', '11', '10'], 1],
    ['one token', ['293253841305472'], 0],
    ['one token, many times', ['293253841305472', '293253841305472'], 0],
    ['tokens of different lengths', ['33', '334'], 0],
    ['no token', [], 0],
  ])('of %s', (_what, tokens, shared) => {
    expect(sharedDigits(tokens)).toBe(shared)
  })
})
