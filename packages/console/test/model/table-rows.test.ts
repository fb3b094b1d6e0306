import { describe, expect, test } from 'vitest'
import type { LocksResponse } from '../../src/api/types.js'
import { MomentEstimates } from '../../src/model/moment-estimates.js'
import { arrange, kindOf, matches, prefixOf } from '../../src/model/table-rows.js'

const RESPONSE: LocksResponse = {
  held: [
    {
      hold: '7',
      locks: [
        { name: 'ledger/b', mode: 'exclusive', token: '7' },
        { name: 'gpu', mode: { permits: 4 }, token: '7', slot: 2 },
      ],
      session: '3',
      client: 'worker',
      persistent: false,
      ageMs: 4_000,
      remainingMs: 6_000,
      data: '{"host":"a"}',
    },
    {
      hold: '9',
      locks: [{ name: 'archive', mode: 'shared', token: '8' }],
      session: null,
      client: 'archivist',
      persistent: true,
      ageMs: 0,
      remainingMs: null,
    },
  ],
  pending: [
    {
      session: '4',
      request: 1,
      client: 'second',
      locks: [{ name: 'ledger/b', mode: 'exclusive' }],
      waitingMs: 100,
      remainingMs: null,
    },
    {
      session: '3',
      request: 2,
      client: 'third',
      locks: [{ name: 'ledger/b', mode: 'shared' }],
      waitingMs: 50,
      remainingMs: 900,
    },
  ],
  delays: [{ name: 'cooling', mode: 'exclusive', remainingMs: 500 }],
  sessions: [{ session: '3', client: 'worker', ttlMs: 10_000, remainingMs: 6_000, holds: 1, waiters: 1 }],
  next: null,
  at: '1.2.3',
  cluster: 'c',
  epoch: 1,
}

describe('arrange', () => {
  const snapshot = arrange(RESPONSE, 100_000, new MomentEstimates())
  const of = (name: string) => snapshot.locks.find((row) => row.name === name)

  test('returns one row per lock, by name, with its holders, its queue in order, and its delays', () => {
    expect(snapshot.locks.map((row) => row.name)).toEqual(['archive', 'cooling', 'gpu', 'ledger/b'])
    expect(of('ledger/b')?.holds).toMatchObject([
      { hold: '7', names: ['ledger/b', 'gpu'], since: 96_000, until: 106_000, ttlMs: 10_000, data: '{"host":"a"}' },
    ])
    expect(of('ledger/b')?.queue.map((waiter) => [waiter.client, waiter.until])).toEqual([
      ['second', undefined],
      ['third', 100_900],
    ])
    expect(of('archive')?.holds).toMatchObject([{ until: undefined, ttlMs: undefined, persistent: true }])
    expect(of('cooling')).toMatchObject({ holds: [], queue: [], delays: [{ until: 100_500 }] })
  })

  test('kindOf names the kind of a lock', () => {
    expect(snapshot.locks.map(kindOf)).toEqual(['shared by 1', 'delayed', '1 of 4 permits', 'exclusive'])
    expect(kindOf({ name: 'x', holds: [], queue: [], delays: [] })).toBe('free')
  })

  test('matches finds parts of names, holders, waiters and tokens; with a slash, whole segments', () => {
    const found = (text: string) => snapshot.locks.filter((row) => matches(row, text)).map((row) => row.name)
    expect(found('LEDG')).toEqual(['ledger/b'])
    expect(found('second')).toEqual(['ledger/b'])
    expect(found('archivist')).toEqual(['archive'])
    expect(found('8')).toEqual(['archive'])
    expect(found('ledger/')).toEqual(['ledger/b'])
    expect(found('edger/')).toEqual([])
    expect(found('')).toHaveLength(4)
    expect(['', 'bill', 'billing/', 'billing/inv', 'a/b/c', '/'].map(prefixOf)).toEqual([
      '',
      '',
      'billing',
      'billing',
      'a/b',
      '',
    ])
  })
})

test('MomentEstimates ignores small differences between responses, and follows large ones', () => {
  const estimates = new MomentEstimates()
  const update = (reported: number) => {
    const moment = estimates.update('x', reported)
    estimates.end()
    return moment
  }
  expect([1000, 1800, 900, 1500].map(update)).toEqual([1000, 1000, 900, 900])
  expect(update(5_000)).toBe(5_000)
  estimates.end()
  expect(update(5_900)).toBe(5_900)
})
