import type { Command, Event, LockRequest, Result } from '@leasehold/core'
import { encodeEnvelope } from '@leasehold/fence/cas'
import { describe, expect, it } from 'vitest'
import { BeliefChecker } from '../../src/checkers/belief-checker.js'
import { GrantChecker } from '../../src/checkers/grant-checker.js'
import { MarkChecker } from '../../src/checkers/mark-checker.js'
import { QueueChecker } from '../../src/checkers/queue-checker.js'
import { RegisterChecker } from '../../src/checkers/register-checker.js'
import { RequestChecker } from '../../src/checkers/request-checker.js'
import { Violations } from '../../src/checkers/violation.js'

/** Texts of what `check` found broken. */
function said(check: (violations: Violations) => void, nowMs = () => 0): string[] {
  const violations = new Violations(nowMs)
  check(violations)
  return violations.found.map(({ invariant, text }) => `${invariant}: ${text}`)
}

const lockL = { name: 'L', mode: 'exclusive' as const }
const held = (hold: number, session: number, name = 'L'): Event =>
  ({ kind: 'held', session, client: '', grant: { hold, locks: [{ ...lockL, name, token: hold }] } }) as never
const freed = (hold: number, reason: string, name = 'L'): Event =>
  ({ kind: 'freed', hold, locks: [{ ...lockL, name, token: hold }], reason, actor: '', text: '' }) as never

describe('beliefs after the end of a hold', () => {
  /** A hold of C1 ends at 0 and is believed in `believed` ms later, when another entry comes. */
  const later = (reason: string, believed: number, passedOn = true) => {
    let now = 0
    let believes = false
    return said(
      (violations) => {
        const checks = new BeliefChecker(violations, () => now)
        const client = { client: 'C1', hold: 1 as never, locks: [lockL], leaseMs: 900, clocksKept: () => true }
        checks.add({ ...client, held: () => believes })
        checks.entry([freed(1, reason), ...(passedOn ? [held(2, 2)] : [])])
        believes = true
        now = believed
        checks.entry([])
      },
      () => now,
    )
  }

  it('a hold that has expired and passed on is never held again', () => {
    expect(later('expired', 10)).toEqual(['I5: C1 calls hold 1 of L held 10 ms after its end (expired)'])
    expect(later('expired', 10, false)).toEqual([])
  })

  it('an end without warning is heard of within the lease', () => {
    expect(later('stolen', 900)).toEqual([])
    expect(later('stolen', 960)).toEqual(['I5: C1 calls hold 1 of L held 960 ms after its end (stolen)'])
  })
})

describe('queues', () => {
  const acquire = (session: number, request: number, ...names: string[]): Command =>
    ({ kind: 'acquire', session, request, locks: names.map((name): LockRequest => ({ ...lockL, name })) }) as never
  const queued = (session: number, request: number, ...names: string[]): Event =>
    ({ kind: 'queued', session, request, names }) as never
  const unqueued = (session: number, request: number, ...names: string[]): Event =>
    ({ kind: 'unqueued', session, request, names, reason: 'timeout' }) as never
  const run = (...entries: [Command[], Event[]][]) =>
    said((violations) => {
      const grants = new GrantChecker(violations, 1)
      const checks = new QueueChecker(violations, grants, (name) => name === 'delayed')
      for (const [commands, events] of entries) {
        grants.entry(events)
        checks.entry(commands, events)
      }
    })

  const waiting: [Command[], Event[]][] = [
    [[], [held(1, 1)]],
    [[acquire(2, 5, 'L')], [queued(2, 5, 'L')]],
    [[acquire(3, 5, 'L')], [queued(3, 5, 'L')]],
  ]

  it('I14: waiters are served in turn', () => {
    expect(run(...waiting, [[], [freed(1, 'released'), held(2, 2)]])).toEqual([])
    const [past] = run(...waiting, [[], [freed(1, 'released'), held(2, 3)]])
    expect(past).toBe('I14: lock L, hold 2: granted past request 5 of session 2, which waits')
  })

  it('I14: no waiter waits for a free lock', () => {
    expect(run(...waiting, [[], [freed(1, 'released')]])).toEqual([
      'I14: lock L: request 5 of session 2 waits, and could be granted',
    ])
    // The front of two locks leaves, and the one behind it could have had the free one.
    const both: [Command[], Event[]][] = [
      [[], [held(1, 1, 'a')]],
      [[acquire(2, 5, 'a', 'b')], [queued(2, 5, 'a', 'b')]],
      [[acquire(3, 5, 'b')], [queued(3, 5, 'b')]],
    ]
    expect(run(...both)).toEqual([])
    expect(run(...both, [[], [unqueued(2, 5, 'a', 'b'), held(2, 3, 'b')]])).toEqual([])
    expect(run(...both, [[], [unqueued(2, 5, 'a', 'b')]])).toEqual([
      'I14: lock b: request 5 of session 3 waits, and could be granted',
    ])
  })

  it('a lock delay blocks, and a hold that is handed over passes no waiter', () => {
    expect(run([[acquire(2, 5, 'delayed')], [queued(2, 5, 'delayed')]])).toEqual([])
    expect(run(...waiting, [[], [freed(1, 'moved'), held(2, 9)]])).toEqual([])
  })
})

describe('registers', () => {
  const put = (fence: number | undefined, version: bigint, session = 1): [Command, Result, Event] => [
    { kind: 'put', key: 'k', session, ...(fence === undefined ? {} : { fence: { hold: fence, lock: 'L' } }) } as never,
    { kind: 'put', version } as never,
    { kind: 'put', key: 'k', version } as never,
  ]
  const run = (...steps: (Event | [Command, Result, Event])[]) =>
    said((violations) => {
      const checks = new RegisterChecker(violations)
      for (const step of steps) {
        if (Array.isArray(step)) checks.entry([step[0]], [step[1]], [step[2]])
        else checks.entry([], [], [step])
      }
    })

  it('I3: a write under a hold that has ended, or of another client', () => {
    expect(run(held(1, 1), put(1, 2n))).toEqual([])
    expect(run(put(undefined, 2n))).toEqual([])
    expect(run(held(1, 1), freed(1, 'stolen'), put(1, 2n))[0]).toMatch(
      /takes a write under hold 1 of L, which has ended/,
    )
    expect(run(held(1, 9), put(1, 2n))[0]).toMatch(/which does not fence it/)
  })

  it('I3: versions that do not grow', () => {
    expect(run(put(undefined, 3n), put(undefined, 3n))).toEqual(['I3: register k has version 3 after 3'])
  })
})

describe('marks', () => {
  const bytes = (mark: bigint, write: string) =>
    encodeEnvelope({ mark, kind: 'lock', lock: 'L', write, value: new Uint8Array(1) })
  const run = (...steps: (readonly [opened: bigint] | readonly [mark: bigint, write: string])[]) =>
    said((violations) => {
      const checks = new MarkChecker(violations)
      for (const [token, write] of steps) {
        if (write === undefined) checks.opens('R', token, 'C2')
        else checks.stored('R', bytes(token, write))
      }
    })

  it('I3: marks that fall, also beyond 2^53', () => {
    expect(run([33n, 'a'], [33n, 'b'], [34n, 'b'])).toEqual([])
    expect(run([34n, 'a'], [33n, 'a'])).toEqual(['I3: the mark of R falls from 34 to 33'])
    expect(run([2n ** 62n + 1n, 'a'], [2n ** 62n, 'a'])).toHaveLength(1)
  })

  it('I3: a write between the opening and the writing of a later hold', () => {
    expect(run([34n, 'a'], [34n], [34n, 'b'])).toEqual([])
    expect(run([32n, 'a'], [34n], [33n, 'b'])).toEqual([
      'I3: R takes a write with token 33 after C2 has opened it with 34',
    ])
  })
})

describe('requests', () => {
  const run = (...steps: [Command, Result][]) =>
    said((violations) => {
      const checks = new RequestChecker(violations)
      for (const [command, result] of steps) checks.entry([command], [result], [])
    })
  const command = (kind: string, request: number, more = {}) => ({ kind, session: 1, request, ...more }) as never
  const refused = (code: string) => ({ kind: 'refused', code, message: '' }) as never
  const granted = (hold: number) => ({ kind: 'granted', grant: { hold, locks: [] } }) as never

  it('I8: a repeat with another answer', () => {
    const release = command('release', 4)
    const done = { kind: 'released' } as never
    expect(run([release, done], [release, done], [release, refused('expired-request')])).toEqual([])
    expect(run([release, done], [release, refused('not-holder')])[0]).toMatch(/was released, and then refused/)
    expect(run([command('acquire', 4), refused('busy')], [command('acquire', 4), granted(3)])[0]).toMatch(/then hold 3/)
  })

  it('sessions after a restore may have the ids of earlier ones', () => {
    const found = said((violations) => {
      const checks = new RequestChecker(violations)
      checks.entry([command('acquire', 4)], [granted(3)], [])
      checks.restored()
      checks.entry([command('acquire', 4)], [granted(5)], [])
    })
    expect(found).toEqual([])
  })

  it('I8: an acquire that has an effect after it was cancelled', () => {
    const cancelled = (was: string) => ({ kind: 'cancelled', was }) as never
    const cancel = command('cancel', 5, { target: 4 })
    expect(run([cancel, cancelled('unknown')], [command('acquire', 4), refused('aborted')])).toEqual([])
    expect(run([cancel, cancelled('unknown')], [command('acquire', 4), granted(3)])[0]).toMatch(/then hold 3/)
    expect(run([command('acquire', 4), granted(3)], [cancel, cancelled('granted')])).toEqual([])
  })
})
