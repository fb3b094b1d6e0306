import { describe, expect, it } from 'vitest'
import { judgeTokenGrants, type TimedGrant, type TokenGrant, TokenPairs } from '../../src/checkers/token-pairs.js'

const grant = (token: number, more: Partial<TokenGrant> = {}): TokenGrant => ({
  lock: 'L',
  token: BigInt(token),
  mode: 'exclusive',
  hold: `hold ${token}`,
  ...more,
})
const shared = (token: number, hold: string, incarnation = 1): TokenGrant =>
  grant(token, { mode: 'shared', hold, incarnation })

/** The rules that grants break, in the order of the grants. */
function broken(...grants: TokenGrant[]): string[] {
  const pairs = new TokenPairs()
  return grants.flatMap((one) => pairs.granted(one)?.rule ?? [])
}

describe('TokenPairs', () => {
  it('accepts tokens that grow, each lock for itself', () => {
    expect(broken(grant(1), grant(3), grant(2, { lock: 'M' }), grant(4), grant(3, { lock: 'M' }))).toEqual([])
    expect(broken(grant(1, { mode: { permits: 2 } }), grant(2, { mode: { permits: 2 } }))).toEqual([])
  })

  it('accepts one token of a shared generation', () => {
    expect(broken(grant(1), shared(2, 'a'), shared(2, 'b'), grant(3))).toEqual([])
    expect(broken(shared(2, 'a'), shared(4, 'b'))).toEqual([])
  })

  it.each([
    ['two exclusive holds', [grant(2), grant(2, { hold: 'other' })]],
    ['two permits', [grant(2, { mode: { permits: 2 } }), grant(2, { mode: { permits: 2 } })]],
    ['a shared and an exclusive hold', [shared(2, 'a'), grant(2, { incarnation: 1 })]],
    ['an exclusive and a shared hold', [grant(2, { incarnation: 1 }), shared(2, 'a')]],
    ['the same hold id of two incarnations', [grant(2, { incarnation: 1 }), grant(2, { incarnation: 2 })]],
    ['shared holds of two incarnations', [shared(2, 'a', 1), shared(2, 'b', 2)]],
    ['a token that is not the newest', [grant(2), grant(9), grant(2)]],
  ])('rejects a token that is granted twice: %s', (_what, grants) => {
    expect(broken(...grants)).toEqual(['twice'])
  })

  it.each([
    ['exclusive', [grant(5), grant(4)]],
    ['permits', [grant(5, { mode: { permits: 2 } }), grant(4, { mode: { permits: 2 } })]],
    ['shared', [shared(5, 'a'), shared(4, 'b')]],
    ['shared, in a generation that an exclusive hold has ended', [shared(5, 'a'), grant(6), shared(5, 'b')]],
    ['of another incarnation', [grant(5, { incarnation: 1 }), grant(4, { incarnation: 2 })]],
  ])('rejects a token below an earlier one: %s', (_what, grants) => {
    expect(broken(...grants)).toEqual(['order'])
  })

  it('compares with the greatest token of all time, after an earlier fault', () => {
    expect(broken(grant(9), grant(4), grant(5), grant(10))).toEqual(['order', 'order'])
  })

  it('names both grants', () => {
    const pairs = new TokenPairs()
    pairs.granted(grant(2, { incarnation: pairs.begins() }))
    expect(pairs.granted(grant(2, { hold: 'C2', incarnation: pairs.begins() }))?.text).toBe(
      'lock L: token 2 was granted twice, to hold 2 (exclusive, incarnation 1) and to C2 (exclusive, incarnation 2)',
    )
    expect(pairs.granted(grant(1, { mode: { permits: 1 } }))?.text).toBe(
      'lock L: token 1 was granted to hold 1 (permit), after token 2 to hold 2 (exclusive, incarnation 1)',
    )
  })
})

describe('judgeTokenGrants', () => {
  const timed = (token: number, askedAt: number, knownAt: number, more: Partial<TokenGrant> = {}): TimedGrant => ({
    ...grant(token, more),
    askedAt,
    knownAt,
  })
  const rules = (...grants: TimedGrant[]): string[] => judgeTokenGrants(grants).map(({ rule }) => rule)

  it('accepts overlapping requests in any order', () => {
    expect(rules(timed(2, 1, 4), timed(1, 2, 3), timed(3, 5, 6))).toEqual([])
    expect(rules(timed(5, 1, 2, { mode: 'shared' }), timed(5, 3, 4, { mode: 'shared' }))).toEqual([])
  })

  it('rejects a token that is granted twice, also to overlapping requests', () => {
    expect(rules(timed(2, 1, 4), timed(2, 2, 3))).toEqual(['twice'])
    expect(rules(timed(2, 1, 2), timed(3, 3, 4), timed(2, 5, 6))).toEqual(['twice'])
  })

  it('rejects a token below one that was known before the request', () => {
    expect(rules(timed(5, 1, 2), timed(4, 3, 4))).toEqual(['order'])
    expect(rules(timed(4, 3, 4), timed(5, 1, 2))).toEqual(['order'])
    expect(rules(timed(5, 1, 2), timed(6, 1, 9), timed(4, 3, 4, { lock: 'M' }))).toEqual([])
    expect(rules(timed(5, 1, 2, { mode: 'shared' }), timed(6, 3, 4), timed(5, 5, 6, { mode: 'shared' }))).toEqual([
      'order',
    ])
  })
})
