import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Key, MergeSorter } from '../../src/state/merge-sorter.js'

function ordered<K extends Key>(keys: readonly K[]): K[] {
  const order = new MergeSorter<K>((key) => key)
  for (const key of keys) order.add(key)
  order.close()
  const all: K[] = []
  for (let key = order.next(); key !== undefined; key = order.next()) all.push(key)
  return all
}

/** Some stretches in order, some the other way round, some mixed: longer than a run may get. */
function stretches(lengths: readonly number[]): number[] {
  const keys: number[] = []
  lengths.forEach((length, i) => {
    const base = ((i * 7919) % 13) * 10_000
    for (let k = 0; k < length; k++)
      keys.push(base + (i % 3 === 0 ? k : i % 3 === 1 ? length - k : (k * 7919) % 10_007))
  })
  return keys
}

describe('order', () => {
  it('returns the added elements in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (keys) => {
        expect(ordered(keys)).toEqual(keys.toSorted((a, b) => a - b))
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (keys) => {
        expect(ordered(keys)).toEqual(keys.toSorted())
      }),
    )
  })

  it('does so with many runs', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 9 }), (lengths) => {
        const keys = stretches(lengths)
        expect(ordered(keys)).toEqual(keys.toSorted((a, b) => a - b))
      }),
      { numRuns: 50 },
    )
    const many = Array.from({ length: 150_000 }, (_, i) => i)
    expect(ordered([...many, -1])).toEqual([-1, ...many])
  })
})
