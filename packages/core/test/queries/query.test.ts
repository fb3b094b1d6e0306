import { describe, expect, it } from 'vitest'
import {
  covers,
  InvalidError,
  LAST_ORDINAL,
  LockState,
  type Query,
  QUERY_LIMIT_DEFAULT,
  QUERY_LIMIT_MAX,
  type QueryResult,
  queryState,
} from '../../src/index.js'
import { Bench } from '../state/support.js'

function query(bench: Bench, asked: Query = {}): QueryResult {
  return queryState(bench.state, asked, bench.state.index)
}

/** All pages; no page may be larger than asked for. */
function pages(bench: Bench, asked: Query, limit: number): QueryResult[] {
  const found: QueryResult[] = []
  let cursor: string | undefined
  do {
    const page = query(bench, { ...asked, limit, ...(cursor === undefined ? {} : { cursor }) })
    expect(page.held.length).toBeLessThanOrEqual(limit)
    expect(page.pending.length).toBeLessThanOrEqual(limit)
    expect(page.sessions.length).toBeLessThanOrEqual(3 * limit)
    found.push(page)
    cursor = page.next
  } while (cursor !== undefined && found.length < 1000)
  return found
}

/** Sessions 1–5 hold `a/0` … `a/4` and `b/0` … `b/4`, each waits for the `a/` lock of the next. Sessions 6–30 are idle. */
function crowd(): Bench {
  const bench = new Bench()
  const sessions = Array.from({ length: 30 }, (_, i) => bench.open(10_000 + i, `client ${i}`))
  for (let i = 0; i < 5; i++) bench.hold(sessions[i] as never, [`a/${i}`, { name: `b/${i}`, mode: 'shared' }])
  for (let i = 0; i < 5; i++) bench.acquire(sessions[i] as never, [`a/${(i + 1) % 5}`], { waitMs: 7000 + i })
  return bench
}

describe('a query', () => {
  it('shows holds, waiters and sessions with what is left of their time', () => {
    const bench = crowd()
    bench.advance(1000)
    const { held, pending, sessions, delays, next, at } = query(bench, { limit: 100 })
    expect(held).toHaveLength(5)
    expect(held[0]).toMatchObject({
      id: 31,
      session: 1,
      client: 'client 0',
      persistent: false,
      ageMs: 1000,
      remainingMs: 9000,
    })
    expect(held[0]?.locks).toEqual([
      { name: 'a/0', mode: 'exclusive', token: 31 },
      { name: 'b/0', mode: 'shared', token: 31 },
    ])
    expect(pending[1]).toEqual({
      session: 2,
      request: 2,
      client: 'client 1',
      locks: [{ name: 'a/2', mode: 'exclusive' }],
      waitingMs: 1000,
      remainingMs: 6001,
    })
    expect(sessions).toHaveLength(30)
    expect(sessions[4]).toEqual({ id: 5, client: 'client 4', ttlMs: 10_004, remainingMs: 9004, holds: 1, waiters: 1 })
    expect(delays).toEqual([])
    expect(next).toBeUndefined()
    expect(at).toEqual({ epoch: 1, index: bench.state.index, ordinal: LAST_ORDINAL })
  })

  it('leaves nothing out over its pages, and shows no hold and no waiter twice', () => {
    const bench = crowd()
    const whole = query(bench, { limit: 1000 })
    for (const limit of [1, 2, 3, 5, 7, 29, 30, 31]) {
      const found = pages(bench, {}, limit)
      expect(found.flatMap((page) => page.held)).toEqual(whole.held)
      expect(found.flatMap((page) => page.pending)).toEqual(whole.pending)
      const sessions = new Map(found.flatMap((page) => page.sessions).map((one) => [one.id, one]))
      expect(
        [...sessions.values()].sort((a, b) => a.id - b.id),
        `limit ${limit}`,
      ).toEqual(whole.sessions)
      expect(found.length).toBe(Math.ceil(30 / limit))
    }
  })

  it('finds by name and by whole path segments, with the sessions that are concerned and no others', () => {
    const bench = crowd()
    bench.hold(6 as never, ['a/40'])
    const names = (asked: Query) => query(bench, asked).held.flatMap((one) => one.locks.map((lock) => lock.name))
    expect(names({ name: 'a/4' })).toEqual(['a/4', 'b/4'])
    expect(names({ prefix: 'a/4' })).toEqual(['a/4', 'b/4'])
    expect(names({ prefix: 'a/40' })).toEqual(['a/40'])
    expect(names({ prefix: 'c' })).toEqual([])
    expect(names({ name: 'a' })).toEqual([])
    const one = query(bench, { name: 'a/4' })
    expect(one.pending.map((waiter) => waiter.session)).toEqual([4])
    expect(one.sessions.map((session) => session.id)).toEqual([4, 5])
    for (const limit of [1, 2, 4]) {
      const found = pages(bench, { prefix: 'a' }, limit)
      expect(found.flatMap((page) => page.held)).toHaveLength(6)
      expect(new Set(found.flatMap((page) => page.sessions).map((session) => session.id))).toEqual(
        new Set([1, 2, 3, 4, 5, 6]),
      )
    }
    expect(covers('a', 'a/4')).toBe(true)
  })

  it('lists all holders and waiters of one lock over its pages', () => {
    const bench = new Bench()
    const sessions = Array.from({ length: 9 }, () => bench.open())
    for (const session of sessions.slice(0, 5)) bench.hold(session, [{ name: 's', mode: 'shared' }])
    for (const session of sessions.slice(5)) bench.acquire(session, ['s'], { waitMs: -1 })
    const found = pages(bench, { name: 's' }, 2)
    expect(found.flatMap((page) => page.held.map((one) => one.session))).toEqual(sessions.slice(0, 5))
    expect(found.flatMap((page) => page.pending.map((one) => one.session))).toEqual(sessions.slice(5))
    expect(found.flatMap((page) => page.pending.map((one) => one.remainingMs))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  it('shows the slots of permits and what a lock delay still blocks', () => {
    const bench = new Bench()
    const [a, b] = [bench.open(1000), bench.open()]
    bench.hold(a, ['x', { name: 'p', mode: { permits: 3 } }], { lockDelayMs: 5000 as never })
    bench.hold(b, [{ name: 'p', mode: { permits: 3 } }])
    bench.advance(1000)
    bench.advance(500)
    const { held, delays } = query(bench)
    expect(held.map((one) => one.locks[0]?.slot)).toEqual([1])
    expect(delays).toEqual([
      { name: 'x', mode: 'exclusive', remainingMs: 4500 },
      { name: 'p', mode: { permits: 3 }, slot: 0, remainingMs: 4500 },
    ])
    expect(query(bench, { name: 'p' }).delays).toHaveLength(1)
  })

  it('refuses limits and cursors that make no sense', () => {
    const bench = crowd()
    for (const limit of [0, -1, 1.5, QUERY_LIMIT_MAX + 1, Number.NaN]) {
      expect(() => query(bench, { limit })).toThrow(InvalidError)
    }
    for (const cursor of ['', '1', '1.2', '1.2.3.4', 'a.b.c', '1.2.-3', `1.2.${'9'.repeat(17)}`]) {
      expect(() => query(bench, { cursor })).toThrow(InvalidError)
    }
    expect(query(bench, { limit: QUERY_LIMIT_MAX }).held).toHaveLength(5)
    expect(QUERY_LIMIT_DEFAULT).toBeLessThanOrEqual(QUERY_LIMIT_MAX)
  })

  it('changes nothing, and a restored state shows the same', () => {
    const bench = crowd()
    const hash = bench.state.hash()
    const shown = query(bench)
    expect(bench.state.hash()).toBe(hash)
    const copy = LockState.restore(bench.state.snapshot())
    expect(queryState(copy, {}, copy.index)).toEqual(shown)
  })
})
