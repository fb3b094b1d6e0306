import { describe, expect, it } from 'vitest'
import { drift, type Hunted, type Mutant, rowOf, rowsIn, withRows } from '../src/index.js'

const EMPTY = 'before\n<!-- mutants: written by npm run mutants -->\n<!-- /mutants -->\nafter\n'
const one: Mutant = { id: 'core/one', bug: 'a < b', patches: [] }
const two: Mutant = { id: 'raft/two', bug: 'two', patches: [], profile: 'storage', members: 5 }

const hunted = (id: string, more: Partial<Hunted>): Hunted => ({ id, profile: 'swarm', seeds: 3, ...more })

describe('the table of mutants', () => {
  it('names what finds a mutant, and after how many seeds', () => {
    const seed = { seed: 1, why: 'I2: a | b\nmore' }
    expect(rowOf(one, hunted('core/one', { seed }))).toBe(
      '| `core/one` | a &lt; b | explorer, `swarm` | 1 seed | I2: a \\| b |',
    )
    const scenario = { id: 'S1', why: 'x' }
    expect(rowOf(one, hunted('core/one', { scenario }))).toBe(
      '| `core/one` | a &lt; b | scenario S1 | 0 seeds; not in 3 of `swarm` | x |',
    )
    expect(rowOf(one, hunted('core/one', { scenario, seeds: 0 }))).toBe(
      '| `core/one` | a &lt; b | scenario S1 | 0 seeds | x |',
    )
    expect(rowOf(two, hunted('raft/two', { scenario, seed: { seed: 7, why: 'y' } }))).toBe(
      '| `raft/two` | two | scenario S1; explorer, `swarm`, 5 members | 7 seeds | y |',
    )
    const simulation = { seed: 9, why: 'two leaders' }
    expect(rowOf(two, hunted('raft/two', { simulation }))).toBe(
      '| `raft/two` | two | simulation of the core | 9 seeds | two leaders |',
    )
    const test = { file: 'core/test/one.test.ts', title: 'one is one' }
    expect(rowOf(one, hunted('core/one', { test }))).toBe(
      '| `core/one` | a &lt; b | test `core/test/one.test.ts` | not in 3 seeds | one is one |',
    )
    expect(rowOf(one, hunted('core/one', { test, scenario, seed }))).toBe(
      '| `core/one` | a &lt; b | test `core/test/one.test.ts`; scenario S1; explorer, `swarm` | 1 seed | I2: a \\| b |',
    )
    expect(rowOf(two, hunted('raft/two', { test, simulation }))).toBe(
      '| `raft/two` | two | test `core/test/one.test.ts`; simulation of the core | 9 seeds | two leaders |',
    )
    expect(rowOf(one, hunted('core/one', {}))).toBe('| `core/one` | a &lt; b | nobody | not in 3 seeds |  |')
  })

  it('keeps the rows that were not hunted now, in the order of the list', () => {
    const first = withRows(EMPTY, [one, two], [hunted('raft/two', { seed: { seed: 2, why: 'y' } })])
    const both = withRows(first, [one, two], [hunted('core/one', { seed: { seed: 3, why: 'z' } })])
    expect([...rowsIn(both).keys()]).toEqual(['core/one', 'raft/two'])
    expect(rowsIn(both).get('raft/two')).toBe(rowsIn(first).get('raft/two'))
    expect(both.startsWith('before\n')).toBe(true)
    expect(both.endsWith('\nafter\n')).toBe(true)
    expect([...rowsIn(withRows(both, [two], [])).keys()]).toEqual(['raft/two'])
  })

  it('tells where it and the list differ', () => {
    const found = hunted('core/one', { seed: { seed: 3, why: 'z' } })
    const document = withRows(EMPTY, [one], [found])
    expect(drift(document, [one])).toEqual([])
    expect(drift(document, [{ ...one, bug: 'another' }])).toEqual(['core/one has the text of another bug'])
    expect(drift(document, [one, two])).toEqual(['raft/two has no row'])
    expect(drift(document, [])).toEqual(['core/one has a row, and is no mutant any more'])
    expect(drift(withRows(EMPTY, [one], [hunted('core/one', {})]), [one])).toEqual(['core/one is found by nobody'])
    expect(() => rowsIn('nothing')).toThrow(/mutants: written by/)
  })
})
