import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Heap } from '../src/index.js'

interface Item {
  rank: number
  place: number
}

describe('Heap', () => {
  it('returns elements in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (numbers) => {
        const heap = new Heap<number>((a, b) => a < b)
        for (const number of numbers) heap.push(number)
        expect(heap.size).toBe(numbers.length)
        const popped: number[] = []
        for (let top = heap.pop(); top !== undefined; top = heap.pop()) popped.push(top)
        expect(popped).toEqual([...numbers].sort((a, b) => a - b))
      }),
    )
  })

  it('keeps the order and the places when elements leave from the middle or change their rank', () => {
    const step = fc.record({ kind: fc.constantFrom('push', 'remove', 'change'), rank: fc.nat(50), at: fc.nat(1000) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const heap = new Heap<Item>(
          (a, b) => a.rank < b.rank,
          (item, place) => {
            item.place = place
          },
        )
        const items: Item[] = []
        for (const { kind, rank, at } of steps) {
          const item = items[at % Math.max(items.length, 1)]
          if (kind === 'push' || item === undefined) {
            const added = { rank, place: -1 }
            items.push(added)
            heap.push(added)
          } else if (kind === 'remove') {
            items.splice(items.indexOf(item), 1)
            heap.removeAt(item.place)
          } else {
            item.rank = rank
            heap.update(item.place)
          }
          expect(heap.size).toBe(items.length)
          expect(heap.peek()?.rank).toBe(items.length === 0 ? undefined : Math.min(...items.map((one) => one.rank)))
          for (const one of items) expect(heap.at(one.place)).toBe(one)
        }
      }),
    )
  })
})
