import { describe, expect, it } from 'vitest'
import {
  countsOf,
  holdDetailsOf,
  holdOf,
  holdsOfLock,
  localSessions,
  oldestLiveSerial,
  registerOf,
  registersOf,
  sessionOf,
  sessionSecretOf,
} from '../../src/index.js'
import { Bench } from '../state/support.js'

const SECRET = 'ab'.repeat(16)

describe('facts for the border', () => {
  it('a session: its secret, what is left of it, and its request numbers by what became of them', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(5000, 'me'), bench.open()]
    bench.hold(b, ['taken'])
    const at = (request: number, lock: string, waitMs = 0) =>
      bench.acquire(a, [lock], { request, waitMs, ack: { lowest: 1, also: [] } })
    at(9, 'taken', -1)
    at(2, 'x')
    at(5, 'taken')
    at(1, 'y')
    at(7, 'taken', -1)
    bench.one({ kind: 'renew', session: a, ack: { lowest: 1, also: [1, 12] } })
    bench.advance(1000)
    expect(sessionOf(bench.state, a)).toEqual({
      id: a,
      secret: '1'.padStart(32, '0'),
      nonce: '1'.padStart(32, '0'),
      ttlMs: 5000,
      remainingMs: 4000,
      local: false,
      client: 'me',
      highestRequest: 12,
      answered: [2, 5],
      waiting: [7, 9],
    })
    expect(sessionSecretOf(bench.state, a)).toBe('1'.padStart(32, '0'))
    bench.one({ kind: 'renew', session: a, ack: { lowest: 20, also: [] } })
    expect(sessionOf(bench.state, a)).toMatchObject({ highestRequest: 19, answered: [], waiting: [] })
    expect(sessionOf(bench.state, b)).toMatchObject({ highestRequest: 1, answered: [1], waiting: [] })
    expect(sessionOf(bench.state, 99)).toBeUndefined()
    expect(sessionSecretOf(bench.state, 99)).toBeUndefined()
  })

  it('what was taken out may be kept: it does not change with the state', () => {
    const bench = new Bench()
    const session = bench.open()
    bench.hold(session, ['x'])
    const facts = sessionOf(bench.state, session)
    const before = structuredClone(facts)
    bench.hold(session, ['y'])
    bench.advance(10)
    expect(facts).toEqual(before)
  })

  it('a hold: whose it is, its secret, and whether it outlives its session', () => {
    const bench = new Bench()
    const session = bench.open(1000)
    const plain = bench.hold(session, ['x'])
    const lasting = bench.hold(session, ['y'], { persistent: true, secret: SECRET })
    const portable = bench.hold(session, ['z'], { portable: true, secret: SECRET })
    const of = (hold: number) => holdDetailsOf(bench.state, hold)
    expect(of(plain.hold)).toMatchObject({ session, secret: undefined, persistent: false, confirmed: false })
    expect(of(lasting.hold)).toMatchObject({ session, secret: SECRET, persistent: true, confirmed: false })
    expect(of(portable.hold)).toMatchObject({ session, secret: SECRET, persistent: false, confirmed: false })
    bench.one({ kind: 'renew', session, ack: { lowest: 4, also: [] } })
    expect(of(plain.hold)?.confirmed).toBe(false)
    expect(of(lasting.hold)?.confirmed).toBe(true)
    expect(holdOf(bench.state, lasting.hold)?.remainingMs).toBeUndefined()
    expect(holdOf(bench.state, plain.hold)?.remainingMs).toBe(1000)
    bench.advance(1000)
    expect(of(plain.hold)).toBeUndefined()
    expect(holdOf(bench.state, plain.hold)).toBeUndefined()
    expect(of(lasting.hold)).toEqual({
      id: lasting.hold,
      locks: [{ name: 'y', mode: 'exclusive', token: lasting.hold }],
      session: undefined,
      secret: SECRET,
      persistent: true,
      confirmed: true,
    })
  })

  it('the holds of one lock, oldest first, in every mode', () => {
    const bench = new Bench()
    const sessions = [bench.open(), bench.open(), bench.open()]
    expect(holdsOfLock(bench.state, 's')).toEqual([])
    const shared = sessions.map((session) => bench.hold(session, [{ name: 's', mode: 'shared' }]).hold)
    const permits = sessions.map((session) => bench.hold(session, [{ name: 'p', mode: { permits: 3 } }]).hold)
    const { hold } = bench.hold(sessions[0] as never, ['x'])
    expect(holdsOfLock(bench.state, 's')).toEqual(shared)
    expect(holdsOfLock(bench.state, 'p')).toEqual(permits)
    expect(holdsOfLock(bench.state, 'x')).toEqual([hold])
    // The lowest slot goes to the youngest hold: the order is of the holds, not of the slots.
    bench.one({ kind: 'release', session: sessions[0] as never, hold: permits[0] as never })
    const young = bench.hold(sessions[0] as never, [{ name: 'p', mode: { permits: 3 } }])
    expect(young.locks[0]?.slot).toBe(0)
    expect(holdsOfLock(bench.state, 'p')).toEqual([permits[1], permits[2], young.hold])
  })

  it('counts, local sessions, registers and the oldest token in use', () => {
    const bench = new Bench()
    const nonce = 'cd'.repeat(16)
    bench.one({ kind: 'openSession', nonce, secret: nonce, ttlMs: 1000 as never, client: '', local: true })
    const session = bench.open()
    expect(oldestLiveSerial(bench.state)).toBe(3)
    const first = bench.hold(session, [{ name: 's', mode: 'shared' }], { lockDelayMs: 100 as never })
    bench.hold(session, [{ name: 's', mode: 'shared' }])
    bench.acquire(session, ['s'], { waitMs: -1 })
    bench.one({ kind: 'steal', hold: first.hold, actor: '', reason: '' })
    // The second reader still uses the token of the first.
    expect(oldestLiveSerial(bench.state)).toBe(first.hold)
    const numbered = { session, request: bench.next(session), ack: { lowest: 1, also: [] } }
    bench.one({ kind: 'put', ...numbered, key: 'k', value: new Uint8Array([1]) })
    expect(countsOf(bench.state)).toEqual({ sessions: 2, holds: 1, waiters: 1, delays: 1, locks: 1, registers: 1 })
    expect(localSessions(bench.state)).toEqual([1])
    expect(bench.state.localSessions()).toEqual([1])
    expect(registerOf(bench.state, 'k')).toMatchObject({ key: 'k', value: new Uint8Array([1]), lock: undefined })
    expect(registerOf(bench.state, 'l')).toBeUndefined()
  })

  it('registers in the order of their keys, below a prefix, a page at a time', () => {
    const bench = new Bench()
    const session = bench.open()
    const keys = Array.from({ length: 90 }, (_, i) => `k/${(i * 37) % 90}`)
    for (const [i, key] of [...keys, 'kind', 'a'].entries()) {
      const put = { kind: 'put', key, value: new Uint8Array(i), ifVersion: 0n } as const
      const request = bench.next(session)
      const numbered = { session, request, ack: { lowest: request, also: [] } }
      bench.one({ ...put, ...numbered })
    }
    const sorted = [...keys].sort()
    const seen: string[] = []
    let after: string | undefined
    for (let page = 0; page < 20; page++) {
      const { registers, next } = registersOf(bench.state, { prefix: 'k', limit: 7, after })
      seen.push(...registers.map((one) => one.key))
      after = next
      if (next === undefined) break
    }
    expect(seen).toEqual(sorted)
    expect(registersOf(bench.state, {}).registers[0]).toMatchObject({ key: 'a', lock: undefined, bytes: 91 })
    expect(registersOf(bench.state, { prefix: 'none' })).toEqual({ registers: [], next: undefined })
    expect(() => registersOf(bench.state, { limit: 0 })).toThrow(/limit/)
  })
})
