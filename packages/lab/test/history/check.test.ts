import { checkHistory, HistoryRecorder, modelNamed, type Operation } from '@leasehold/lab'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExactCache, HashedCache } from '../../src/history/cache.js'
import { Search, wordsFor } from '../../src/history/search.js'
import { Timeline } from '../../src/history/timeline.js'
import { Transitions } from '../../src/history/transitions.js'
import { arbitraryHistory } from './generate.js'

const register = modelNamed('register')

function write(process: string, value: number, invokedAt: number, returnedAt?: number): Operation {
  return {
    process,
    op: 'write',
    key: '',
    value,
    invokedAt,
    returnedAt,
    outcome: returnedAt === undefined ? 'unknown' : 'ok',
  }
}

function read(process: string, result: number, invokedAt: number, returnedAt: number): Operation {
  return { process, op: 'read', key: '', result, invokedAt, returnedAt, outcome: 'ok' }
}

/** Writes of distinct values that all overlap, and a read that none of them explains. */
function hard(writes: number): Operation[] {
  return [...Array.from({ length: writes }, (_, i) => write(`w${i}`, i, 0)), read('r', -1, 1, 2)]
}

describe('limits', () => {
  it('answers unknown when the clock says that time is up, and asks no other clock', () => {
    let clock = 0
    const result = checkHistory(register, hard(40), { budgetMs: 100, now: () => clock++ })
    expect(result).toMatchObject({ verdict: 'unknown', undecided: [{ key: '', operations: 41, reason: 'time' }] })
    expect(clock).toBeLessThan(200)
  })

  it('answers unknown after so many steps, the same on every run', () => {
    const run = () => checkHistory(register, hard(40), { maxSteps: 10_000 })
    expect(run()).toMatchObject({ verdict: 'unknown', undecided: [{ reason: 'steps' }] })
    expect(run().steps).toBe(run().steps)
  })

  it('answers unknown when the memory for configurations is full', () => {
    const result = checkHistory(register, hard(40), { maxConfigurations: 1_000 })
    expect(result).toMatchObject({ verdict: 'unknown', undecided: [{ reason: 'memory' }] })
  })

  it('is not unknown because of one partition when another is illegal', () => {
    const other: Operation = { ...read('x', 5, 0, 1), key: 'other' }
    expect(checkHistory(register, [...hard(40), other], { maxSteps: 10_000 })).toMatchObject({
      verdict: 'not-linearizable',
      explanation: { key: 'other' },
    })
  })

  it('keeps its stack and its time for a long history', () => {
    const long = Array.from({ length: 50_000 }, (_, i) =>
      i % 2 === 0 ? write('a', i, i * 2, i * 2 + 1) : read('b', i - 1, i * 2, i * 2 + 1),
    )
    expect(checkHistory(register, long)).toMatchObject({ verdict: 'linearizable', operations: 50_000 })
  })

  it('takes many lost writes of one value as one', () => {
    const lost = Array.from({ length: 60 }, (_, i) => write(`w${i}`, 1, i))
    expect(checkHistory(register, [...lost, read('r', 2, 100, 101)], { maxSteps: 100_000 }).verdict).toBe(
      'not-linearizable',
    )
  })
})

describe('time', () => {
  it('counts equal times as overlapping', () => {
    expect(checkHistory(register, [write('a', 1, 0, 1), write('b', 2, 1, 2), read('c', 1, 2, 3)]).verdict).toBe(
      'linearizable',
    )
    expect(checkHistory(register, [write('a', 1, 0, 1), write('b', 2, 2, 3), read('c', 1, 4, 5)]).verdict).toBe(
      'not-linearizable',
    )
  })

  it('does not need the operations in order', () => {
    expect(checkHistory(register, [read('c', 2, 4, 5), write('b', 2, 2, 3), write('a', 1, 0, 1)]).verdict).toBe(
      'linearizable',
    )
  })

  it.each([
    [{ invokedAt: Number.NaN }, /finite time of invocation/],
    [{ returnedAt: undefined }, /finite time of return/],
    [{ invokedAt: 9 }, /returned at 1, before its call at 9/],
  ])('refuses %j', (change, message) => {
    expect(() => checkHistory(register, [{ ...write('a', 1, 0, 1), ...change }])).toThrow(message)
  })
})

describe('caches', () => {
  const operations = Array.from({ length: 70 }, (_, i) => i)

  it.each([
    ['hashed', () => new HashedCache(100_000)],
    ['exact', () => new ExactCache(3, 10_000_000)],
  ] as const)('%s: knows each configuration from its second time on', (_name, make) => {
    const cache = make()
    const seen = new Set<string>()
    let bits = 1
    for (let i = 0; i < 5_000; i++) {
      bits = (Math.imul(bits, 1_103_515_245) + 12_345) | 0
      const set = Int32Array.of(bits & 0xff, bits & 0xf00, 0)
      const state = (bits >>> 20) & 1
      const text = `${set.join()}/${state}`
      expect(cache.add(set, bits & 0xff, bits & 0xf00, state)).toBe(seen.has(text) ? 'known' : 'new')
      seen.add(text)
    }
    expect(seen.size).toBeGreaterThan(operations.length)
  })

  it('the exact one tells configurations of one hash apart, the hashed one cannot', () => {
    const exact = new ExactCache(1, 10_000)
    const hashed = new HashedCache(10)
    for (const cache of [exact, hashed]) expect(cache.add(Int32Array.of(1), 7, 7, 0)).toBe('new')
    expect(exact.add(Int32Array.of(2), 7, 7, 0)).toBe('new')
    expect(hashed.add(Int32Array.of(2), 7, 7, 0)).toBe('known')
  })

  it('says when it is full', () => {
    const exact = new ExactCache(1, 2 * 3 * 4)
    expect([1, 2, 3].map((bits) => exact.add(Int32Array.of(bits), bits, bits, 0))).toEqual(['new', 'new', 'full'])
    expect(exact.add(Int32Array.of(2), 2, 2, 0)).toBe('known')
  })

  it('lead to the same verdict', () => {
    const limits = { maxSteps: 1e6, maxStates: 1e6, isTimeUp: () => false }
    fc.assert(
      fc.property(arbitraryHistory('register', 24), (history) => {
        const happened = history.filter(({ outcome, key }) => outcome !== 'fail' && key === '')
        const timeline = () => new Timeline(happened)
        const transitions = new Transitions(register, timeline().operations)
        const hashed = new Search(timeline(), transitions, new HashedCache(1e6)).run(limits)
        const exact = new Search(timeline(), transitions, new ExactCache(wordsFor(happened.length), 1e8)).run(limits)
        expect(hashed).toEqual(exact)
      }),
      { numRuns: 300 },
    )
  })
})

describe('an explanation', () => {
  it('shows the stuck operation, the states before it, the way there and what was open', () => {
    const recorder = new HistoryRecorder()
    recorder.invoke({ process: 'a', op: 'write', key: 'r', value: 0 }).ok()
    const late = recorder.invoke({ process: 'b', op: 'write', key: 'r', value: 4 })
    const stale = recorder.invoke({ process: 'c', op: 'read', key: 'r' })
    stale.ok({ value: 3 })
    late.ok()
    recorder.invoke({ process: 'd', op: 'read', key: 'r' }).ok({ value: 4 })
    const { explanation } = checkHistory(register, recorder.operations())
    expect(explanation?.text).toBe(`r: no order of the first 3 of 4 operations explains
    process c: read → 3
  before it, the state can only be
    4
    0
  last in one order that gets there
    process a: write 0
    process b: write 4`)
  })
})

describe('the recorder', () => {
  it('turns calls and answers into operations', () => {
    const recorder = new HistoryRecorder()
    const first = recorder.invoke({ process: 'p', op: 'acquire', key: 'jobs' })
    const second = recorder.invoke({ process: 'p', op: 'acquire', key: 'jobs', owner: 'h2' })
    const third = recorder.invoke({ process: 'p', op: 'release', key: 'jobs' })
    recorder.invoke({ process: 'q', op: 'release', key: 'jobs' })
    second.unknown()
    first.ok({ token: 5n })
    first.fail()
    third.fail()
    expect(recorder.events()).toHaveLength(7)
    expect(recorder.operations()).toMatchObject([
      { process: 'p', outcome: 'ok', token: 5n, invokedAt: 0, returnedAt: 5 },
      { process: 'p', outcome: 'unknown', owner: 'h2' },
      { process: 'p', outcome: 'fail' },
      { process: 'q', outcome: 'unknown' },
    ])
  })
})
