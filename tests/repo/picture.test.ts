import { expect, test } from 'vitest'
import { arrows, housePicture, PLACES } from '../../scripts/house-picture.mjs'
import { HOUSE } from '../../scripts/structure.mjs'

const columns: Record<string, { column: number }> = PLACES

test('the picture has a place of its own for each package', () => {
  const taken = Object.entries(HOUSE).map(([name, { floor }]) => `${floor}/${columns[name]?.column}`)
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
  expect(() => housePicture({ attic: { floor: 1, imports: [] } })).toThrow('attic has no place')
})
