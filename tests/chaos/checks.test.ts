import type { Operation } from '@leasehold/lab'
import type { Locks, WatchEvent } from 'leasehold'
import { describe, expect, test } from 'vitest'
import { EventJudge } from './checks/events.js'
import { judgeHistories, judgeTokens } from './checks/history.js'
import { judgeKept, judgeLong } from './checks/kept.js'
import { judgeEffects } from './checks/resource.js'
import { storms } from './plan.js'
import type { Judge, Recorded } from './work/journal.js'
import type { Effect } from './work/resource.js'

/* The judges of the chaos run must be able to say no. */

function effect(seq: number, kind: Effect['kind'], token: number, before: number): Effect {
  return {
    seq,
    lock: 'a',
    kind,
    token: BigInt(token),
    owner: 'o',
    before,
    after: kind === 'write' ? before + 1 : before,
  }
}

describe('the judge of effects', () => {
  test('takes units that follow each other', () => {
    const effects = [
      effect(1, 'open', 1, 0),
      effect(2, 'write', 1, 0),
      effect(3, 'open', 2, 1),
      effect(4, 'write', 2, 1),
    ]
    expect(judgeEffects(effects)).toEqual([])
  })

  test('sees a stale write, and the update that it loses', () => {
    const effects = [
      effect(1, 'open', 1, 0),
      effect(2, 'open', 2, 0),
      effect(3, 'write', 2, 0),
      effect(4, 'write', 1, 0),
    ]
    expect(judgeEffects(effects)).toEqual([
      'effect 4 of a: token 1 was accepted after 2',
      'effect 4 of a: a write built on 0, where 1 was written',
    ])
  })
})

function grant(token: number, invokedAt: number, returnedAt: number, owner: string): Operation {
  return { process: owner, owner, op: 'acquire', key: 'a', outcome: 'ok', invokedAt, returnedAt, token: BigInt(token) }
}

function recorded(judge: Judge, operations: readonly Operation[], notes: Recorded['notes'] = []): Recorded {
  return { operations: new Map([[judge, operations]]), notes }
}

describe('the judge of histories', () => {
  const release: Operation = {
    process: 'x',
    owner: 'x',
    op: 'release',
    key: 'a',
    outcome: 'ok',
    invokedAt: 3,
    returnedAt: 4,
  }

  test('ends a hold without an observed end at the next grant', () => {
    const history = recorded('fenced-mutex', [grant(1, 1, 2, 'x'), grant(2, 3, 4, 'y')])
    expect(judgeHistories(history)[0]?.problem).toBeUndefined()
    expect(judgeTokens(history)).toEqual([])
  })

  const shared = (owner: string, token: number, from: number, to: number): Operation[] => [
    { ...grant(token, from, from + 1, owner), mode: 'shared' },
    { ...release, owner, process: owner, mode: 'shared', invokedAt: to, returnedAt: to + 1 },
  ]

  test('accepts a gap in generations: a grant to a client that was stopped for longer than its session', () => {
    const waiting: Operation = { ...grant(9, 10, 4_000_000, 'w'), mode: 'shared' }
    const readers = [...shared('x', 3, 100, 200), ...shared('y', 3, 300, 400)]
    expect(judgeHistories(recorded('rw', [...readers, waiting]))[0]?.problem).toBeUndefined()
    const short = { ...waiting, returnedAt: 20 }
    expect(judgeHistories(recorded('rw', [...readers, short]))[0]?.problem).toContain('not-linearizable')
    expect(judgeHistories(recorded('rw', readers))[0]?.problem).toContain('not-linearizable')
  })

  test('sees a second grant while the first holder is known to hold', () => {
    const held = { ...release, invokedAt: 9, returnedAt: 10 }
    const [judged] = judgeHistories(recorded('fenced-mutex', [grant(1, 1, 2, 'x'), grant(2, 3, 4, 'y'), held]))
    expect(judged?.problem).toContain('not-linearizable')
  })

  test('sees tokens that go back, or are given twice', () => {
    const back = recorded('fenced-mutex', [grant(5, 1, 2, 'x'), release, grant(4, 5, 6, 'y')])
    expect(judgeTokens(back)).toEqual(['lock a: token 4 was granted to y (exclusive), after token 5 to x (exclusive)'])
    expect(judgeHistories(back)[0]?.problem).toContain('not-linearizable')
    const twice = recorded('permits', [grant(5, 1, 4, 'x'), grant(5, 2, 3, 'y')])
    expect(judgeTokens(twice)).toEqual(['lock a: token 5 was granted twice, to x (exclusive) and to y (exclusive)'])
  })
})

describe('the judge of tokens', () => {
  const shared = (token: number, from: number, owner: string): Operation => ({
    ...grant(token, from, from + 1, owner),
    mode: 'shared',
  })

  test('accepts one token of a shared generation, and rejects it with an exclusive hold between', () => {
    expect(judgeTokens(recorded('rw', [shared(5, 1, 'x'), shared(5, 3, 'y')]))).toEqual([])
    const between = [shared(5, 1, 'x'), grant(6, 3, 4, 'y'), shared(5, 5, 'z')]
    expect(judgeTokens(recorded('rw', between))).toEqual([
      'lock a: token 5 was granted to z (shared), after token 6 to y (exclusive)',
    ])
  })

  test('rejects a token of a shared and an exclusive hold', () => {
    expect(judgeTokens(recorded('rw', [shared(5, 1, 'x'), grant(5, 1, 4, 'y')])).join()).toContain('granted twice')
  })

  test('knows holds that are only noted', () => {
    const notes = [1, 2].map((at) => ({ note: 'kept' as const, lock: 'a', id: '7', process: `c${at}`, at }))
    expect(judgeTokens(recorded('rw', [], notes))).toEqual([
      'lock a: token 7 was granted twice, to c1 (exclusive) and to c2 (exclusive)',
    ])
    const later = [grant(6, 3, 4, 'x'), grant(8, 5, 6, 'y')]
    expect(judgeTokens(recorded('fenced-mutex', later, notes.slice(0, 1)))).toEqual([
      'lock a: token 6 was granted to x (exclusive), after token 7 to c1 (exclusive)',
    ])
  })
})

describe('the judge of holds', () => {
  const service = (...ids: bigint[]) =>
    ({ query: () => Promise.resolve({ held: ids.map((id) => ({ id })), next: undefined }) }) as unknown as Locks
  const note = (name: 'kept' | 'giving' | 'given' | 'long', id: string) => ({
    note: name,
    lock: 'a',
    id,
    process: 'c1',
    at: 1,
  })

  test('reports acknowledged holds that are missing, and released holds that are there', async () => {
    const notes = [note('kept', '1'), note('kept', '2'), note('giving', '2'), note('given', '2')]
    expect((await judgeKept(service(1n), recorded('rw', [], notes))).problems).toEqual([])
    expect((await judgeKept(service(2n), recorded('rw', [], notes))).problems).toEqual([
      'a: hold 1 was acknowledged and is gone',
      'a: hold 2 was released and is still there',
    ])
  })

  test('misses a hold that its holder believes in', async () => {
    const history = recorded('rw', [], [note('long', '7')])
    expect((await judgeLong(service(7n), history, ['c1'])).problems).toEqual([])
    expect((await judgeLong(service(), history, ['c1'])).problems).toHaveLength(1)
    expect((await judgeLong(service(), history, ['c2'])).problems).toEqual([])
  })
})

describe('the judge of events', () => {
  const held = (cursor: string, id: bigint, mode: unknown, token: bigint, slot?: number) =>
    ({
      kind: 'held',
      cursor,
      id,
      locks: [{ name: 'a', mode, token, slot }],
      session: 1n,
      client: '',
    }) as unknown as WatchEvent
  const freed = (cursor: string, id: bigint) =>
    ({ kind: 'freed', cursor, id, locks: [{ name: 'a' }] }) as unknown as WatchEvent
  const judged = (...events: WatchEvent[]): string[] => {
    const judge = new EventJudge()
    for (const event of events) judge.judge(event)
    return judge.problems
  }

  test('takes grants that follow each other, generations, and permits', () => {
    expect(judged(held('1.1.0', 1n, 'exclusive', 1n), freed('1.2.0', 1n), held('1.2.1', 2n, 'exclusive', 2n))).toEqual(
      [],
    )
    expect(judged(held('1.1.0', 1n, 'shared', 1n), held('1.2.0', 2n, 'shared', 1n))).toEqual([])
    expect(judged(held('1.1.0', 1n, { permits: 2 }, 1n, 0), held('1.2.0', 2n, { permits: 2 }, 2n, 1))).toEqual([])
  })

  test.each([
    ['two exclusive holds', held('1.2.0', 2n, 'exclusive', 2n), '2 was granted while 1 is held'],
    ['a shared one beside an exclusive one', held('1.2.0', 2n, 'shared', 2n), '2 was granted while 1 is held'],
    ['an event that comes again', held('1.1.0', 1n, 'exclusive', 1n), 'came after'],
  ])('sees %s', (_what, event, problem) => {
    expect(judged(held('1.1.0', 1n, 'exclusive', 1n), event).join()).toContain(problem)
  })

  test('sees a token that goes back, a slot twice, and one permit too many', () => {
    const back = [held('1.1.0', 1n, 'exclusive', 5n), freed('1.2.0', 1n), held('1.3.0', 2n, 'exclusive', 4n)]
    expect(judged(...back).join()).toContain('token 4 was granted to hold 2 (exclusive, incarnation 1), after token 5')
    const twice = judged(held('1.1.0', 1n, { permits: 1 }, 1n, 0), held('1.2.0', 2n, { permits: 1 }, 2n, 0)).join()
    expect(twice).toContain('have slot 0')
    expect(twice).toContain('one too many of 1')
  })
})

describe('the plan', () => {
  const first = (seed: number) => {
    const plan = storms(seed, 3)
    return JSON.stringify(Array.from({ length: 30 }, () => plan.next().value))
  }

  test('is the same for the same seed, and another for another', () => {
    expect(first(1)).toBe(first(1))
    expect(first(1)).not.toBe(first(2))
  })
})
