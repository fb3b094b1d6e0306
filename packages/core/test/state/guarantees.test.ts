import { describe, expect, it } from 'vitest'
import {
  type Acquire,
  type Change,
  type Command,
  type Index,
  LockState,
  type LockRequest,
  queryState,
  registerOf,
  type Result,
  splitToken,
} from '../../src/index.js'
import { Bench } from './support.js'

const SECRET = 'ab'.repeat(16)
const FOREVER: Partial<Acquire> = { waitMs: -1 }
const shared = (name: string): LockRequest => ({ name, mode: 'shared' })
const permit = (name: string, permits: number): LockRequest => ({ name, mode: { permits } })

function code(result: Result | undefined): string {
  return result?.kind === 'refused' ? result.code : (result?.kind ?? 'nothing')
}

function held(bench: Bench, name: string) {
  return queryState(bench.state, { name }, bench.state.index).held
}

describe('1. Exclusion in the log', () => {
  it('one exclusive hold, or shared ones, or n permits, for any requests in one entry', () => {
    const bench = new Bench()
    const sessions = [bench.open(), bench.open(), bench.open(), bench.open()]
    const all = (lock: LockRequest | string) =>
      bench.apply(sessions.map((session) => bench.acquireCommand(session, [lock]))).results.map(code)
    expect(all('x')).toEqual(['granted', 'busy', 'busy', 'busy'])
    expect(all(shared('x'))).toEqual(['busy', 'busy', 'busy', 'busy'])
    expect(all(shared('s'))).toEqual(['granted', 'granted', 'granted', 'granted'])
    expect(all('s')).toEqual(['busy', 'busy', 'busy', 'busy'])
    expect(all(permit('p', 3))).toEqual(['granted', 'granted', 'granted', 'busy'])
    expect(all('p')).toEqual(['mismatch', 'mismatch', 'mismatch', 'mismatch'])
  })

  it('all or nothing for several locks', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(), bench.open()]
    bench.hold(a, ['y'])
    expect(code(bench.acquire(b, ['x', 'y', shared('z')]))).toBe('busy')
    expect(bench.state.machine.locks.get('x')).toBeUndefined()
    expect(bench.hold(b, ['x', shared('z')]).locks).toHaveLength(2)
  })

  it('an operator may shrink a semaphore: nothing is taken away, and nothing granted until the count fits', () => {
    const bench = new Bench()
    const session = bench.open()
    const holds = [0, 1, 2].map(() => bench.hold(session, [permit('p', 3)]))
    expect(bench.one({ kind: 'configure', permits: { name: 'p', size: 1 } }).kind).toBe('configured')
    expect(held(bench, 'p')).toHaveLength(3)
    expect(code(bench.acquire(session, [permit('p', 3)]))).toBe('mismatch')
    expect(code(bench.acquire(session, [permit('p', 1)], FOREVER))).toBe('queued')
    for (const [i, { hold }] of holds.entries()) {
      const { pushes } = bench.apply([{ kind: 'release', session, hold }])
      expect(pushes).toHaveLength(i === 2 ? 1 : 0)
    }
    expect(held(bench, 'p').map((one) => one.locks[0]?.slot)).toEqual([0])
  })

  it('a lock delay keeps what the dead hold blocked: all, writers only, or one slot', () => {
    const bench = new Bench()
    const dead = bench.open(1000)
    const alive = bench.open(60_000)
    bench.hold(dead, ['x', shared('s'), permit('p', 2)], { lockDelayMs: 5000 as never })
    bench.advance(1000)
    expect(code(bench.acquire(alive, ['x']))).toBe('busy')
    expect(code(bench.acquire(alive, [shared('x')]))).toBe('busy')
    expect(code(bench.acquire(alive, ['s']))).toBe('busy')
    expect(code(bench.acquire(alive, [shared('s')]))).toBe('granted')
    expect(bench.hold(alive, [permit('p', 2)]).locks[0]?.slot).toBe(1)
    expect(code(bench.acquire(alive, [permit('p', 2)]))).toBe('busy')
    bench.advance(4999)
    expect(code(bench.acquire(alive, ['x']))).toBe('busy')
    bench.advance(1)
    expect(code(bench.acquire(alive, ['x']))).toBe('granted')
    expect(bench.hold(alive, [permit('p', 2)]).locks[0]?.slot).toBe(0)
  })
})

describe('2. Ordered tokens (rule T)', () => {
  it('grow over release, re-creation of the name, snapshot and restore', () => {
    const bench = new Bench()
    let last = 0
    for (let round = 0; round < 5; round++) {
      const session = bench.open()
      const grant = bench.hold(session, ['x'])
      expect(grant.locks[0]?.token).toBeGreaterThan(last)
      expect(grant.locks[0]?.token).toBe(grant.hold)
      last = grant.hold
      bench.one(
        round % 2 === 0
          ? { kind: 'release', session, hold: grant.hold }
          : { kind: 'closeSession', session, by: 'owner', reason: '' },
      )
      expect(bench.state.machine.locks.size).toBe(0)
      Object.assign(bench, { state: LockState.restore(bench.state.snapshot()) })
    }
  })

  it('shared holds that overlap share the token of their generation, also when its first hold has gone', () => {
    const bench = new Bench()
    const [a, b, c] = [bench.open(), bench.open(), bench.open()]
    const first = bench.hold(a, [shared('x')])
    const second = bench.hold(b, [shared('x')])
    bench.one({ kind: 'release', session: a, hold: first.hold })
    const third = bench.hold(c, [shared('x')])
    expect([second, third].map((one) => one.locks[0]?.token)).toEqual([first.hold, first.hold])
    for (const [session, { hold }] of [
      [b, second],
      [c, third],
    ] as const)
      bench.one({ kind: 'release', session, hold })
    const exclusive = bench.hold(a, ['x'])
    expect(exclusive.locks[0]?.token).toBeGreaterThan(third.hold)
    bench.one({ kind: 'release', session: a, hold: exclusive.hold })
    expect(bench.hold(b, [shared('x')]).locks[0]?.token).toBeGreaterThan(exclusive.hold)
  })

  it('adoption and permits get greater tokens, a shared hold keeps its own', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(), bench.open()]
    const old = bench.hold(a, ['x', shared('s'), permit('p', 2)], { portable: true, secret: SECRET })
    const request = bench.next(b)
    const adopted = bench.one({
      kind: 'adopt',
      session: b,
      request,
      ack: { lowest: 1, also: [] },
      hold: old.hold,
      secret: SECRET,
      newSecret: 'cd'.repeat(16),
    })
    if (adopted.kind !== 'granted') throw new Error(code(adopted))
    const { grant } = adopted
    expect(grant.hold).toBeGreaterThan(old.hold)
    expect(grant.locks.map((one) => one.token)).toEqual([grant.hold, old.hold, grant.hold])
    expect(grant.locks[2]?.slot).toBe(old.locks[2]?.slot)
    expect(grant.secret).toBe('cd'.repeat(16))
  })

  it('a raised epoch ends sessions, waiters, delays and holds; persistent holds stay under new ids and are listed', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(5000), bench.open()]
    const options = { persistent: true, secret: SECRET }
    const keep = [
      bench.hold(a, [shared('s'), 'x'], options),
      bench.hold(a, [shared('s')], options),
      bench.hold(b, [permit('p', 2)], options),
    ]
    const unseen = bench.hold(b, ['unseen'], options)
    bench.hold(b, ['plain'])
    bench.acquire(b, ['x'], FOREVER)
    bench.one({ kind: 'renew', session: a, ack: { lowest: 3, also: [] } })
    bench.one({ kind: 'renew', session: b, ack: { lowest: 2, also: [] } })
    bench.one({
      kind: 'put',
      session: b,
      request: bench.next(b),
      ack: { lowest: 2, also: [] },
      key: 'k',
      value: new Uint8Array([1]),
    })
    const before = bench.state.hash()
    const { state, moved } = bench.state.withEpoch(7)
    expect(bench.state.hash()).toBe(before)
    expect(moved.map((one) => one.from)).toEqual(keep.map((one) => one.hold))
    expect(moved.map((one) => one.from)).not.toContain(unseen.hold)
    const view = queryState(state, {}, state.index)
    expect(view.sessions).toEqual([])
    expect(view.pending).toEqual([])
    expect(view.delays).toEqual([])
    expect(view.held.map((one) => one.id)).toEqual(moved.map((one) => one.to))
    expect(view.held.every((one) => one.session === undefined && one.persistent && one.remainingMs === undefined)).toBe(
      true,
    )
    // One generation of shared holds is one generation afterwards.
    expect(view.held[0]?.locks[0]?.token).toBe(view.held[1]?.locks[0]?.token)
    expect(state.hasDeadlines).toBe(false)
    expect(LockState.restore(state.snapshot()).hash()).toBe(state.hash())

    const raised = new Bench({ epoch: 7 })
    Object.assign(raised, { state, index: state.index, at: state.now })
    const session = raised.open()
    expect(code(raised.acquire(session, ['x']))).toBe('busy')
    expect(code(raised.acquire(session, [shared('s')]))).toBe('granted')
    expect(raised.hold(session, ['plain']).hold).toBeGreaterThan(Math.max(...moved.map((one) => one.to)))
    const version = registerOf(state, 'k')?.version as bigint
    const put = raised.one({
      kind: 'put',
      session,
      request: raised.next(session),
      ack: { lowest: 1, also: [] },
      key: 'k',
      value: new Uint8Array(),
      ifVersion: version,
    })
    expect(put.kind === 'put' && put.version > version).toBe(true)
    expect(splitToken((put as { version: bigint }).version).epoch).toBe(7)
    expect(splitToken(version).epoch).toBe(1)
    expect(code(raised.one({ kind: 'release', hold: moved[0]?.to as never, secret: SECRET }))).toBe('released')
  })

  it('an epoch never falls: the state rejects a lower one', () => {
    const { state } = new Bench({ epoch: 5 })
    for (const epoch of [5, 4, 0, 2 ** 15, 1.5]) expect(() => state.withEpoch(epoch)).toThrow('epoch')
    for (const epoch of [0, -1, 2 ** 15]) expect(() => LockState.create({ epoch })).toThrow('epoch')
  })
})

describe('5. Lower and upper bound, in cluster time', () => {
  it('a session lives for its TTL after the last renewal, to the millisecond, and not longer', () => {
    const bench = new Bench()
    const session = bench.open(1000)
    bench.advance(999)
    expect(bench.one({ kind: 'renew', session }).kind).toBe('renewed')
    expect(bench.state.nextDeadline()).toBe(bench.at + 1000)
    expect(bench.advance(999).pushes).toEqual([])
    expect(bench.advance(1).pushes).toEqual([{ session, ended: 'expired' }])
    expect(code(bench.one({ kind: 'renew', session }))).toBe('session-ended')
  })

  it('a renewal in the entry that would end the session saves it', () => {
    const bench = new Bench()
    const session = bench.open(1000)
    bench.at += 5000
    const { results, pushes } = bench.apply([
      { kind: 'steal', hold: 99 as never, actor: '', reason: '' },
      { kind: 'renew', session },
    ])
    expect(results.map(code)).toEqual(['not-holder', 'renewed'])
    expect(pushes).toEqual([])
  })

  it('a refused renewal is no renewal: it neither prolongs nor acknowledges', () => {
    const bench = new Bench()
    const session = bench.open(1000)
    const hold = bench.hold(session, ['x'], { persistent: true, secret: SECRET })
    bench.advance(500)
    const before = bench.state.nextDeadline()
    expect(code(bench.one({ kind: 'renew', session, seen: 7, ack: { lowest: 2, also: [] } }))).toBe('invalid')
    expect(code(bench.one({ kind: 'renew', session, ack: { lowest: 1, also: [5000] } }))).toBe('invalid')
    expect(bench.state.nextDeadline()).toBe(before)
    // The grant was not acknowledged, so the hold ends with its session.
    expect(bench.advance(500).events.some((event) => event.kind === 'freed' && event.hold === hold.hold)).toBe(true)
  })

  it('time never goes back, and a stamp from the past changes nothing', () => {
    const bench = new Bench()
    const session = bench.open(1000)
    bench.at -= 800
    expect(bench.apply([]).pushes).toEqual([])
    expect(bench.state.now).toBe(1000)
    expect(bench.one({ kind: 'renew', session }).kind).toBe('renewed')
    expect(bench.state.nextDeadline()).toBe(2000)
  })

  it('a session whose end has come is granted nothing on the way there', () => {
    const bench = new Bench()
    const [a, b, c] = [bench.open(1000), bench.open(2000), bench.open(60_000)]
    bench.hold(a, ['x'])
    bench.acquire(b, ['x'], { waitMs: -1, lockDelayMs: 30_000 as never })
    bench.acquire(c, ['x'], FOREVER)
    bench.at += 5000
    const { events, pushes } = bench.apply([])
    const grants = events
      .filter((event) => event.kind === 'held')
      .map((event) => event.kind === 'held' && event.session)
    expect(grants).toEqual([c])
    expect(pushes.filter((push) => push.session === b)).toEqual([{ session: b, ended: 'expired' }])
  })
})

describe('9. Fair', () => {
  it('first come, first served, across modes', () => {
    const bench = new Bench()
    const sessions = Array.from({ length: 6 }, () => bench.open(60_000))
    const first = bench.hold(sessions[0] as never, ['x'])
    const modes: (LockRequest | string)[] = [shared('x'), shared('x'), 'x', shared('x'), 'x']
    modes.forEach((lock, i) => {
      expect(bench.acquire(sessions[i + 1] as never, [lock], FOREVER)).toEqual({ kind: 'queued', position: i + 1 })
    })
    const granted = (command: Command) => {
      const { pushes } = bench.apply([command])
      return pushes.map((push) => [sessions.indexOf(push.session), push.change?.kind])
    }
    // One release wakes only the waiters that it grants; a reader does not pass the writer in front of it.
    expect(granted({ kind: 'release', session: sessions[0] as never, hold: first.hold })).toEqual([
      [1, 'granted'],
      [2, 'granted'],
    ])
    expect(code(bench.acquire(sessions[0] as never, [shared('x')]))).toBe('busy')
    const next = () => {
      const holds = held(bench, 'x')
      const last = holds.at(-1) as (typeof holds)[number]
      return granted({ kind: 'release', session: last.session as never, hold: last.id })
    }
    expect(next()).toEqual([])
    expect(next()).toEqual([[3, 'granted']])
    expect(next()).toEqual([[4, 'granted']])
    expect(next()).toEqual([[5, 'granted']])
  })

  it('waiters of several locks cannot block each other for ever', () => {
    const bench = new Bench()
    const sessions = Array.from({ length: 4 }, () => bench.open(60_000))
    const x = bench.hold(sessions[0] as never, ['x'])
    bench.acquire(sessions[1] as never, ['x', 'y'], FOREVER)
    bench.acquire(sessions[2] as never, ['y', 'x'], FOREVER)
    bench.acquire(sessions[3] as never, ['y'], FOREVER)
    let hold = x.hold
    for (const [i, session] of sessions.entries()) {
      if (i > 0) {
        const mine = queryState(bench.state, {}, bench.state.index).held
        expect(mine.map((one) => one.session)).toEqual([session])
        hold = mine[0]?.id as never
      }
      bench.one({ kind: 'release', session, hold })
    }
    expect(queryState(bench.state, {}, bench.state.index).pending).toEqual([])
  })
})

describe('12. Nothing is lost in silence', () => {
  it('every waiting acquire is resolved, and its client is notified once', () => {
    const bench = new Bench()
    const holder = bench.open(60_000)
    const { hold } = bench.hold(holder, ['x'])
    const [granted, timedOut, expired, cancelled] = [
      bench.open(60_000),
      bench.open(60_000),
      bench.open(2000),
      bench.open(60_000),
    ]
    bench.acquire(timedOut, ['x'], { waitMs: 1000 })
    bench.acquire(expired, ['x'], FOREVER)
    bench.acquire(cancelled, ['x'], FOREVER)
    bench.acquire(granted, ['x'], FOREVER)
    const pushes = [
      ...bench.advance(1000).pushes,
      ...bench.advance(1000).pushes,
      ...bench.apply([{ kind: 'cancel', session: cancelled, request: 2, ack: { lowest: 1, also: [] }, target: 1 }])
        .pushes,
      ...bench.apply([{ kind: 'release', session: holder, hold }]).pushes,
    ]
    const told = pushes.map((push) => [
      push.session,
      push.ended ?? (push.change?.kind === 'refused' ? push.change.refused.code : push.change?.kind),
    ])
    expect(told).toEqual([
      [timedOut, 'timeout'],
      [expired, 'expired'],
      [granted, 'granted'],
    ])
  })

  it('what a client has not seen is repeated in every answer until it has', () => {
    const bench = new Bench()
    const [owner, waiter] = [bench.open(60_000), bench.open(60_000)]
    const stolen = bench.hold(owner, ['x'])
    bench.acquire(waiter, ['x'], FOREVER)
    bench.one({ kind: 'steal', hold: stolen.hold, actor: 'op', reason: 'stuck' })
    const changes = (session: never, seen?: number): readonly Change[] => {
      const result = bench.one({ kind: 'renew', session, ...(seen === undefined ? {} : { seen }) })
      if (result.kind !== 'renewed') throw new Error(code(result))
      return result.changes
    }
    for (let i = 0; i < 3; i++) {
      expect(changes(owner as never)).toMatchObject([
        { kind: 'ended', number: 1, hold: stolen.hold, reason: 'stolen', text: 'stuck' },
      ])
      expect(changes(waiter as never, 0)).toMatchObject([{ kind: 'granted', number: 1, request: 1 }])
    }
    Object.assign(bench, { state: LockState.restore(bench.state.snapshot()) })
    expect(changes(owner as never)).toHaveLength(1)
    expect(changes(owner as never, 1)).toEqual([])
    expect(changes(owner as never)).toEqual([])
  })

  it('watchers of a steal or an operator command see its actor and reason', () => {
    const bench = new Bench()
    const session = bench.open()
    const { hold } = bench.hold(session, ['x'])
    const { events } = bench.apply([{ kind: 'steal', hold, actor: 'ann', reason: 'stuck' }])
    expect(events[0]).toMatchObject({ kind: 'freed', hold, reason: 'stolen', actor: 'ann', text: 'stuck' })
    bench.hold(session, ['y'])
    const closed = bench.apply([{ kind: 'closeSession', session, by: 'operator', reason: 'drain' }])
    expect(closed.events[0]).toMatchObject({ kind: 'freed', reason: 'operator', text: 'drain' })
  })
})

describe('persistent holds', () => {
  it('end with their session until the grant is acknowledged; afterwards only release and steal end them', () => {
    const bench = new Bench()
    const options = { persistent: true, secret: SECRET }
    const [a, b] = [bench.open(1000), bench.open(1000)]
    bench.hold(a, ['x'], options)
    const kept = bench.hold(b, ['y'], options)
    bench.one({ kind: 'renew', session: b, ack: { lowest: 2, also: [] } })
    bench.advance(1000)
    expect(queryState(bench.state, {}, bench.state.index as Index).held.map((one) => one.id)).toEqual([kept.hold])
    const c = bench.open(1000)
    expect(
      code(bench.one({ kind: 'release', session: c, request: 1, ack: { lowest: 1, also: [] }, hold: kept.hold })),
    ).toBe('not-holder')
    expect(code(bench.one({ kind: 'release', hold: kept.hold, secret: 'cd'.repeat(16) }))).toBe('not-holder')
    expect(code(bench.one({ kind: 'release', hold: kept.hold, secret: SECRET }))).toBe('released')
  })

  it('adoption renews the secret and keeps persistence', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(1000), bench.open(3000)]
    const old = bench.hold(a, ['x'], { persistent: true, secret: SECRET })
    bench.one({ kind: 'renew', session: a, ack: { lowest: 2, also: [] } })
    bench.advance(1000)
    const newSecret = 'cd'.repeat(16)
    const adopt: Command = {
      kind: 'adopt',
      session: b,
      request: 1,
      ack: { lowest: 1, also: [] },
      hold: old.hold,
      secret: SECRET,
      newSecret,
    }
    const result = bench.one(adopt)
    if (result.kind !== 'granted') throw new Error(code(result))
    expect(code(bench.one({ ...adopt, request: 2, hold: result.grant.hold }))).toBe('not-holder')
    bench.advance(2000)
    expect(held(bench, 'x').map((one) => [one.id, one.persistent])).toEqual([[result.grant.hold, true]])
    expect(code(bench.one({ kind: 'release', hold: result.grant.hold, secret: newSecret }))).toBe('released')
  })
})
