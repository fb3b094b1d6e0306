import { type Event, type HeldLock, LockState } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { BeliefChecker } from '../../src/checkers/belief-checker.js'
import { CommittedLog } from '../../src/checkers/committed-log.js'
import { GrantChecker } from '../../src/checkers/grant-checker.js'
import { LockHistory } from '../../src/checkers/lock-history.js'
import { PersistedPromiseChecker } from '../../src/checkers/persisted-promise-checker.js'
import { RequestChecker } from '../../src/checkers/request-checker.js'
import { SessionChecker } from '../../src/checkers/session-checker.js'
import { type InvariantId, Violations } from '../../src/checkers/violation.js'
import { WatchChecker } from '../../src/checkers/watch-checker.js'

/** Runs `check` with an empty collection, and returns the invariants that it found broken. */
function broken(check: (violations: Violations) => void): InvariantId[] {
  const violations = new Violations(() => 0)
  check(violations)
  return violations.found.map((one) => one.invariant)
}

const held = (hold: number, mode: HeldLock['mode'], token = hold, slot?: number): Event =>
  ({ kind: 'held', session: 1, client: '', grant: { hold, locks: [lock(mode, token, slot)] } }) as never
const freed = (hold: number, mode: HeldLock['mode'], reason = 'released', token = hold): Event =>
  ({ kind: 'freed', hold, locks: [lock(mode, token)], reason, actor: '', text: '' }) as never
const lock = (mode: HeldLock['mode'], token: number, slot?: number) => ({
  name: 'L',
  mode,
  token,
  ...(slot === undefined ? {} : { slot }),
})

describe('the checks can say no', () => {
  const grants = (...events: Event[]) => broken((violations) => new GrantChecker(violations, 1).entry(events))

  it('I1: holds that exclude each other', () => {
    expect(grants(held(1, 'exclusive'), freed(1, 'exclusive'), held(2, 'exclusive'))).toEqual([])
    expect(grants(held(1, 'exclusive'), held(2, 'exclusive'))).toEqual(['I1'])
    expect(grants(held(1, 'exclusive'), held(2, 'shared'))).toContain('I1')
    expect(grants(held(1, 'shared'), held(2, 'exclusive'))).toEqual(['I1'])
    expect(grants(held(1, { permits: 1 }, 1, 0), held(2, { permits: 1 }, 2, 0))).toContain('I1')
    expect(grants(freed(9, 'exclusive'))).toEqual(['I1'])
  })

  it('I2: tokens that do not grow', () => {
    expect(grants(held(2, 'exclusive'), freed(2, 'exclusive'), held(1, 'exclusive'))).toEqual(['I2'])
    expect(grants(held(1, 'shared', 1), held(2, 'shared', 1))).toEqual([])
    expect(grants(held(1, 'shared', 1), held(2, 'shared', 2))).toEqual(['I2'])
    expect(grants(held(1, 'shared', 1), freed(1, 'shared', 'released', 1), held(2, 'shared', 1))).toEqual(['I2'])
    expect(grants(held(1, 'shared', 1), freed(1, 'shared', 'moved', 1), held(2, 'shared', 1))).toEqual([])
  })

  it('I15: a token that is granted twice', () => {
    expect(grants(held(2, 'exclusive'), freed(2, 'exclusive'), held(3, 'exclusive', 2))).toEqual(['I15'])
    expect(grants(held(2, 'exclusive'), freed(2, 'exclusive'), held(2, 'exclusive'))).toEqual(['I15'])
  })

  it('I15: a token that is granted again by a service that was founded again or restored', () => {
    const again = (mode: HeldLock['mode'], floor = 0, epoch = 1) =>
      broken((violations) => {
        const checks = new GrantChecker(violations, 1)
        checks.entry([held(7, mode)])
        checks.restored(LockState.create({ epoch }))
        checks.entry([held(floor + 7, mode)])
      })
    expect(again('exclusive')).toEqual(['I15'])
    expect(again('shared')).toEqual(['I15'])
    expect(again({ permits: 2 })).toContain('I15')
    expect(again('exclusive', -1)).toEqual(['I2'])
    expect(again('exclusive', 1)).toEqual([])
    expect(again('exclusive', 0, 2)).toEqual([])
  })

  it('I4: a session that ends too early', () => {
    const lived = (ms: number) => {
      let now = 0
      const violations = new Violations(() => now)
      const checks = new SessionChecker(violations, () => now)
      checks.acknowledged(1 as never, 1000, 0)
      now = ms
      checks.entry([{ kind: 'sessionEnded', session: 1 as never, reason: 'expired' }])
      return violations.found.map((one) => one.invariant)
    }
    expect(lived(1000)).toEqual([])
    expect(lived(960)).toEqual([])
    expect(lived(900)).toEqual(['I4'])
  })

  it('I5: a hold that its client still believes in', () => {
    const granted = (believes: boolean, end: Event) =>
      broken((violations) => {
        const checks = new BeliefChecker(violations, () => 0)
        const locks = [{ name: 'L', mode: 'exclusive' as const }]
        const belief = { client: 'C1', hold: 1 as never, locks, leaseMs: 900, clocksKept: () => true }
        checks.add({ ...belief, held: () => believes })
        checks.entry([end, held(2, 'exclusive')])
      })
    expect(granted(true, freed(1, 'exclusive', 'expired'))).toEqual(['I5'])
    expect(granted(false, freed(1, 'exclusive', 'expired'))).toEqual([])
    expect(granted(true, freed(1, 'exclusive', 'stolen'))).toEqual([])
  })

  it('I6: histories that no order explains', () => {
    const history = new LockHistory()
    const grant = (process: string, token: bigint) => {
      const record = history.acquire(process, 'L')
      record.granted({ id: token, locks: [{ name: 'L', mode: 'exclusive', token }] } as never, 'L')
      return record
    }
    const first = grant('a', 5n)
    first.releasing()
    first.released()
    grant('b', 6n)
    expect(history.judge('fenced-mutex', () => true)?.verdict).toBe('linearizable')
    const third = grant('c', 4n)
    third.releasing()
    third.released()
    expect(history.judge('fenced-mutex', () => true)?.verdict).toBe('not-linearizable')
  })

  it('I8: a request with two effects', () => {
    const repeat = (...holds: number[]) =>
      broken((violations) => {
        const checks = new RequestChecker(violations)
        for (const hold of holds) {
          const command = { kind: 'acquire', session: 1, request: 7 } as never
          checks.entry([command], [{ kind: 'granted', grant: { hold, locks: [] } } as never], [])
        }
      })
    expect(repeat(3, 3)).toEqual([])
    expect(repeat(3, 4)).toEqual(['I8'])
  })

  it('I9: watches with a gap, a repeat or a step back', () => {
    const shown = (...places: number[]) =>
      broken((violations) => {
        const checks = new WatchChecker(violations)
        for (let index = 1; index <= 5; index++) checks.entry(index as never, [{}, {}] as never)
        const record = checks.begin('C1', { index: 1, ordinal: 2 })
        for (const place of places) record.places.push({ index: Math.floor(place / 10), ordinal: place % 10 })
        checks.finish()
      })
    expect(shown(21, 22, 31)).toEqual([])
    expect(shown(22, 31)).toEqual(['I9'])
    expect(shown(21, 31)).toEqual(['I9'])
    expect(shown(21, 21)).toEqual(['I9'])
    expect(shown(21, 22, 21)).toEqual(['I9'])
  })

  it('I13, L1, L2, L3: members that disagree', () => {
    const entry = { kind: 'normal' as const, term: 1, index: 1, data: new Uint8Array(0) }
    const log = (check: (log: CommittedLog, hash: string) => void) =>
      broken((violations) => {
        const one = new CommittedLog(violations, { epoch: 1 }, () => {})
        const other = new CommittedLog(new Violations(() => 0), { epoch: 1 }, () => {})
        other.applied('x', 1, 1, '', () => entry)
        check(one, other.state.hash())
      })
    expect(log((one, hash) => one.applied('N1', 1, 1, hash, () => entry))).toEqual([])
    expect(log((one) => one.applied('N1', 1, 1, 'other', () => entry))).toEqual(['I13'])
    const twice = (term: number) => (one: CommittedLog, hash: string) => {
      one.applied('N1', 1, 1, hash, () => entry)
      one.applied('N2', 1, term, hash, () => entry)
    }
    expect(log(twice(1))).toEqual([])
    expect(log(twice(2))).toEqual(['L2'])
    expect(log((one, hash) => one.applied('N1', 3, 1, hash, () => entry))).toEqual(['L3'])
    expect(log((one) => (one.leads('N1', 4), one.leads('N2', 4)))).toEqual(['L1'])
  })

  it('L5: a member that has forgotten what it promised', () => {
    const begins = (raft: { term: number; vote: number; last: number }) =>
      broken((violations) => {
        const checks = new PersistedPromiseChecker(violations)
        const says = (kind: string, term: number, index: number, reject = false, to = 2) =>
          checks.says({ kind: kind as never, from: 1, to, term, index, reject })
        says('voteReply', 4, 0)
        says('appendReply', 4, 20)
        says('appendReply', 4, 18)
        says('voteReply', 4, 0, true, 3)
        says('preVoteReply', 9, 0)
        checks.begins('N1', { id: 1, ...raft })
        checks.begins('N2', { id: 2, term: 0, vote: 0, last: 0 })
      })
    expect(begins({ term: 4, vote: 2, last: 20 })).toEqual([])
    expect(begins({ term: 5, vote: 0, last: 12 })).toEqual([])
    expect(begins({ term: 3, vote: 2, last: 20 })).toEqual(['L5'])
    expect(begins({ term: 4, vote: 0, last: 20 })).toEqual(['L5'])
    expect(begins({ term: 4, vote: 3, last: 20 })).toEqual(['L5'])
    expect(begins({ term: 4, vote: 2, last: 19 })).toEqual(['L5'])
  })
})
