import { checkHistory, modelNamed, type Operation } from '@leasehold/lab'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HistoryRecorder, type RecordedOperation } from '../../../../tools/history/src/recorder.js'
import { ConfigurationCache } from '../../src/history/cache.js'
import { ExactKeys, HashedKeys, type KeyStore } from '../../src/history/key-store.js'
import { Placement } from '../../src/history/placement.js'
import { Search } from '../../src/history/search.js'
import { EntryList } from '../../src/history/entry-list.js'
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
  return [...Array.from({ length: writes }, (_, i) => write(`w${i}`, i, 0, 9)), read('r', -1, 10, 11)]
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
    expect(
      checkHistory(register, [...lost, read('q', 1, 98, 99), read('r', 2, 100, 101)], { maxSteps: 100_000 }).verdict,
    ).toBe('not-linearizable')
  })
})

describe('operations of unknown outcome', () => {
  it('do not blow up the search when they cannot help', () => {
    const lost = Array.from({ length: 40 }, (_, i) => write(`w${i}`, i, 0))
    const rest = Array.from({ length: 40 }, (_, i) => [
      write('a', 100 + i, 10 * i, 10 * i + 1),
      read('b', 100 + i, 10 * i + 2, 10 * i + 3),
    ])
    // The failed cas could have found any of the lost values: all of them count.
    const cas: Operation = { ...read('d', 0, 900, 901), op: 'cas', value: [100, 100], result: false }
    const history = [...lost, ...rest.flat(), cas, read('c', -1, 1_000, 1_001)]
    const result = checkHistory(register, history, { maxSteps: 1_000_000 })
    expect(result.verdict).toBe('not-linearizable')
  })

  it('do not blow up the search of a lock whose holds may have ended by themselves', () => {
    const lock = (process: string, op: string, invokedAt: number, returnedAt?: number): Operation => ({
      process,
      op,
      key: '',
      invokedAt,
      returnedAt,
      outcome: returnedAt === undefined ? 'unknown' : 'ok',
    })
    const history = Array.from({ length: 40 }, (_, i) => [
      lock(`lost${i}`, 'acquire', 10 * i),
      lock(`lost${i}`, 'release', 10 * i + 1),
      lock(`p${i}`, 'acquire', 10 * i + 2, 10 * i + 3),
      lock(`p${i}`, 'release', 10 * i + 4),
    ]).flat()
    const mutex = modelNamed('mutex')
    expect(checkHistory(mutex, history, { maxSteps: 100_000 }).verdict).toBe('linearizable')
    const twice = [...history, lock('x', 'acquire', 1_000, 1_001), lock('y', 'acquire', 1_002, 1_003)]
    const result = checkHistory(mutex, twice, { maxSteps: 100_000 })
    expect(result).toMatchObject({ verdict: 'not-linearizable', explanation: { stuck: { process: 'y' } } })
  })
})

describe('a long run of a lock', () => {
  /** Sixteen clients contend for one lock; some acquires lose their answer, some holds may end by themselves. */
  function run(turns: number, wrongTokenAt: number): Operation[] {
    const recorder = new HistoryRecorder()
    const waiting: { process: string; owner: string; call: RecordedOperation }[] = []
    let seed = 5
    let token = 0n
    let holder: { process: string; owner: string } | undefined
    const draw = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) | 0
      return (seed >>> 8) % below
    }
    for (let turn = 0; turn < turns; turn++) {
      const process = `p${draw(16)}`
      if (process !== holder?.process && !waiting.some((one) => one.process === process)) {
        const owner = `h${turn}`
        waiting.push({ process, owner, call: recorder.invoke({ process, op: 'acquire', key: 'jobs', owner }) })
      }
      if (holder !== undefined && draw(2) === 0) {
        const release = recorder.invoke({ ...holder, op: 'release', key: 'jobs' })
        if (draw(20) === 0) release.unknown()
        else release.ok()
        holder = undefined
      }
      const first = holder === undefined ? waiting.shift() : undefined
      if (first === undefined) continue
      const { owner, call } = first
      const fate = draw(50)
      if (fate > 0) token++
      if (fate < 2) {
        call.unknown()
        if (fate === 1) recorder.invoke({ process: first.process, op: 'release', key: 'jobs', owner })
      } else {
        call.ok({ token: turn === wrongTokenAt || turn === wrongTokenAt + 1 ? token - 2n : token })
        holder = { process: first.process, owner }
      }
    }
    return recorder.operations()
  }

  it('is accepted, and a token that goes back is found', () => {
    const fenced = modelNamed('fenced-mutex')
    expect(checkHistory(fenced, run(4_000, -9), { maxSteps: 1_000_000 }).verdict).toBe('linearizable')
    const wrong = [3_000, 3_001, 3_002].map(
      (turn) => checkHistory(fenced, run(4_000, turn), { maxSteps: 1_000_000 }).verdict,
    )
    expect(wrong).toContain('not-linearizable')
    expect(wrong).not.toContain('unknown')
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
  const placed = (required: number[], optional: number[], hash = 0) => ({
    required: Int32Array.from(required),
    optional: Int32Array.from(optional),
    high: hash,
    low: hash,
  })

  it.each([
    ['hashed', () => new HashedKeys(100_000)],
    ['exact', () => new ExactKeys(2, 10_000_000)],
  ] as const)('%s keys: each configuration is known from its second time on', (_name, make) => {
    const cache = new ConfigurationCache(make(), 0, 100_000)
    const seen = new Set<string>()
    let bits = 1
    for (let i = 0; i < 20_000; i++) {
      bits = (Math.imul(bits, 1_103_515_245) + 12_345) | 0
      const set = placed([(bits >>> 8) & 0xff, (bits >>> 16) & 0xf], [])
      const state = (bits >>> 24) & 1
      const text = `${set.required.join()}/${state}`
      const hashed = { ...set, high: set.required[0] as number, low: set.required[1] as number }
      expect(cache.add(hashed, state)).toBe(seen.has(text) ? 'known' : 'new')
      seen.add(text)
    }
    expect(seen.size).toBeGreaterThan(4_000)
  })

  it('exact keys tell configurations of one hash apart, hashed ones cannot', () => {
    const exact = new ConfigurationCache(new ExactKeys(1, 10_000), 0, 10)
    const hashed = new ConfigurationCache(new HashedKeys(10), 0, 10)
    for (const cache of [exact, hashed]) expect(cache.add(placed([1], [], 7), 0)).toBe('new')
    expect(exact.add(placed([2], [], 7), 0)).toBe('new')
    expect(hashed.add(placed([2], [], 7), 0)).toBe('known')
  })

  it('know what has only spent more of the optional operations', () => {
    const cache = new ConfigurationCache(new ExactKeys(1, 10_000), 2, 10)
    expect(cache.add(placed([1], [0b0110, 0]), 0)).toBe('new')
    expect(cache.add(placed([1], [0b1110, 0]), 0)).toBe('known')
    expect(cache.add(placed([1], [0b0110, 1]), 0)).toBe('known')
    expect(cache.add(placed([1], [0b1100, 0]), 0)).toBe('new')
    expect(cache.add(placed([1], [0b0100, 0]), 0)).toBe('new')
    expect(cache.add(placed([1], [0b1110, 0]), 1)).toBe('new')
    expect(cache.add(placed([2], [0b1110, 0]), 0)).toBe('new')
  })

  it('say when they are full', () => {
    const fill = (cache: ConfigurationCache) => [1, 2, 3, 2].map((bits) => cache.add(placed([bits], [bits], bits), 0))
    expect(fill(new ConfigurationCache(new ExactKeys(1, 2 * 3 * 4), 0, 9))).toEqual(['new', 'new', 'full', 'known'])
    expect(fill(new ConfigurationCache(new HashedKeys(2), 0, 9))).toEqual(['new', 'new', 'full', 'known'])
    expect(fill(new ConfigurationCache(new HashedKeys(9), 1, 2))).toEqual(['new', 'new', 'full', 'known'])
  })

  it('lead to the same verdict', () => {
    const limits = { maxSteps: 1e6, maxStates: 1e6, isTimeUp: () => false }
    fc.assert(
      fc.property(arbitraryHistory('register', 24), (history) => {
        const happened = history.filter(({ outcome, key }) => outcome !== 'fail' && key === '')
        const transitions = new Transitions(register, new EntryList(happened).operations)
        const run = (keysFor: (words: number) => KeyStore) => {
          const entries = new EntryList(happened)
          const placement = new Placement(entries)
          const cache = new ConfigurationCache(keysFor(placement.required.length), placement.optional.length, 1e6)
          return new Search(entries, transitions, placement, cache).run(limits)
        }
        expect(run(() => new HashedKeys(1e6))).toEqual(run((words) => new ExactKeys(words, 1e8)))
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
