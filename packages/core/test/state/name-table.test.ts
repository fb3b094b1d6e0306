import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NameTable } from '../../src/state/name-table.js'

describe('a table by name', () => {
  it('behaves like a map under additions and deletions', () => {
    const step = fc.record({
      kind: fc.constantFrom('set', 'set', 'delete', 'get'),
      name: fc.string({ maxLength: 12 }),
      value: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const table = new NameTable<number>()
        const model = new Map<string, number>()
        for (const { kind, name, value } of steps) {
          if (kind === 'set') {
            table.set(name, value)
            model.set(name, value)
          } else if (kind === 'delete') expect(table.delete(name)).toBe(model.delete(name))
          expect(table.get(name)).toBe(model.get(name))
        }
        for (const { name } of steps) expect(table.get(name)).toBe(model.get(name))
        expect(table.size).toBe(model.size)
        expect([...table.values()].sort((a, b) => a - b)).toEqual([...model.values()].sort((a, b) => a - b))
      }),
    )
  })

  it('keeps its entries while others are added and deleted very often', () => {
    const table = new NameTable<number>()
    for (let i = 0; i < 20_000; i++) table.set(`stays-${i}`, i)
    for (let i = 0; i < 50_000; i++) {
      table.set(`hot-${i % 7}`, i)
      expect(table.delete(`hot-${i % 7}`)).toBe(true)
    }
    for (let i = 0; i < 20_000; i++) expect(table.get(`stays-${i}`)).toBe(i)
    expect(table.get('hot-1')).toBeUndefined()
  })
})
