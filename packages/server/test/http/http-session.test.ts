import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ANSWERS_KEPT } from '../../src/limits.js'
import { HttpSession } from '../../src/http/http-session.js'

const facts = { id: 1 as never, secret: '', ttlMs: 1_000, remainingMs: 1_000, highest: 0, answered: [], waiting: [] }

type Step =
  | { readonly kind: 'take'; readonly given: number | undefined }
  | { readonly kind: 'finish'; readonly which: number }
  | { readonly kind: 'ack' }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('take' as const),
    given: fc.option(fc.integer({ min: 1, max: 300 }), { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('finish' as const), which: fc.nat() }),
  fc.record({ kind: fc.constant('ack' as const) }),
)

describe('HttpSession', () => {
  it('never acknowledges an open request, and never assigns a number twice', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const session = new HttpSession(facts, 1)
        const open: number[] = []
        const used = new Set<number>()
        for (const one of steps) {
          if (one.kind === 'take') {
            const request = session.claimNumber(one.given)
            if (one.given === undefined) expect(used.has(request)).toBe(false)
            used.add(request)
            open.push(request)
          } else if (one.kind === 'finish' && open.length > 0) {
            session.releaseNumber(open.splice(one.which % open.length, 1)[0] as number)
          }
          const ack = session.ack()
          for (const request of open) {
            expect(ack.lowest).toBeLessThanOrEqual(request)
            expect(ack.also).not.toContain(request)
          }
          if (one.kind === 'ack') session.acknowledged(ack)
          expect(session.busy).toBe(open.length > 0)
        }
      }),
    )
  })

  it('acknowledges its own numbers at once, and those of the client later', () => {
    const session = new HttpSession(facts, 1)
    for (let i = 0; i < 10; i++) session.releaseNumber(session.claimNumber())
    expect(session.ack()).toEqual({ lowest: 11, also: [] })
    session.releaseNumber(session.claimNumber(11))
    for (let i = 0; i < 10; i++) session.releaseNumber(session.claimNumber())
    expect(session.ack().lowest).toBe(11)
    expect(session.ack().also).toEqual([12, 13, 14, 15, 16, 17, 18, 19, 20, 21])
    for (let i = 0; i < ANSWERS_KEPT; i++) session.releaseNumber(session.claimNumber(22 + i))
    expect(session.ack().lowest).toBe(22)
  })

  it('starts above the numbers of the state, and acknowledges waiters of an earlier process', () => {
    const session = new HttpSession({ ...facts, highest: 9, answered: [7, 9], waiting: [8] }, 1)
    expect(session.claimNumber()).toBe(10)
    expect(session.ack()).toEqual({ lowest: 7, also: [8] })
    const repeated = new HttpSession({ ...facts, highest: 9, answered: [], waiting: [8] }, 1)
    repeated.claimNumber(8)
    expect(repeated.ack()).toEqual({ lowest: 8, also: [] })
  })
})
