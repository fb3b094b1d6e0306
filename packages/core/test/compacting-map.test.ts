import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CompactingMap, CompactingSet } from '../src/index.js'

/** Deletions outnumber what is left again and again, so that the contents move many times. */
const steps = fc.array(
  fc.record({ key: fc.nat(40), adds: fc.boolean(), times: fc.integer({ min: 1, max: 30 }), clears: fc.nat(60) }),
  { maxLength: 60 },
)

describe('a table for short-lived entries', () => {
  it('is a Map, in the same order, whatever happens to it', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const [fresh, plain] = [new CompactingMap<number, string>(), new Map<number, string>()]
        for (const { key, adds, times, clears } of list) {
          for (let i = 0; i < times; i++) {
            for (const map of [fresh, plain]) map.set(key + i, `${key}/${i}`)
            if (!adds) expect(fresh.delete(key)).toBe(plain.delete(key))
          }
          if (clears === 0) for (const map of [fresh, plain]) map.clear()
          expect(fresh.delete(-1)).toBe(false)
          expect([...fresh]).toEqual([...plain])
          expect([...fresh.keys()]).toEqual([...plain.keys()])
          expect([...fresh.values()]).toEqual([...plain.values()])
          expect([fresh.size, fresh.get(key), fresh.has(key)]).toEqual([plain.size, plain.get(key), plain.has(key)])
        }
      }),
    )
  })

  it('is a Set, in the same order, whatever happens to it', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const [fresh, plain] = [new CompactingSet<number>(), new Set<number>()]
        for (const { key, adds, times, clears } of list) {
          for (let i = 0; i < times; i++) {
            for (const set of [fresh, plain]) set.add(key + i)
            if (!adds) expect(fresh.delete(key)).toBe(plain.delete(key))
          }
          if (clears === 0) for (const set of [fresh, plain]) set.clear()
          expect([...fresh]).toEqual([...plain])
          expect([fresh.size, fresh.has(key)]).toEqual([plain.size, plain.has(key)])
        }
      }),
    )
  })

  it('moves its contents once more entries were deleted than are left, which old iterators do not follow', () => {
    const map = new CompactingMap<number, number>()
    for (let i = 0; i < 200; i++) map.set(i, i)
    const early = map.keys()
    for (let i = 0; i < 90; i++) map.delete(i)
    map.set(1000, 0)
    expect([...early]).toContain(1000)
    const late = map.keys()
    for (let i = 90; i < 120; i++) map.delete(i)
    map.set(2000, 0)
    expect([...late]).not.toContain(2000)
    expect([...map.keys()]).toEqual([...Array.from({ length: 80 }, (_, i) => i + 120), 1000, 2000])
  })
})
