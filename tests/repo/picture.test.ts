import { expect, test } from 'vitest'
import { arrows, housePicture, PLACES } from '../../scripts/house-picture.mjs'
import { HOUSE } from '../../scripts/structure.mjs'

const places: Record<string, { floor: number; column: number }> = PLACES

test('the picture of the packages places every one, and no import goes up', () => {
  for (const [name, { imports }] of Object.entries(HOUSE)) {
    // The commands are about to move out.
    if (name === 'leasehold') continue
    for (const below of imports) expect(places[below]?.floor).toBeLessThanOrEqual(places[name]?.floor ?? 0)
  }
  const taken = Object.values(places).map(({ floor, column }) => `${floor}/${column}`)
  expect(new Set(taken).size).toBe(taken.length)
})

test('the picture leaves out the arrows that follow from others', () => {
  const rows = { a: { imports: [] }, b: { imports: ['a'] }, c: { imports: ['a', 'b'], types: ['a'] } }
  expect(arrows(rows)).toEqual([
    { from: 'b', to: 'a', types: false },
    { from: 'c', to: 'b', types: false },
  ])
})

test('a package without a place is refused', () => {
  expect(() => housePicture({ attic: { imports: [] } })).toThrow('attic has no place')
})
