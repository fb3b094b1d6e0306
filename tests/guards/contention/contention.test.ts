import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWith } from '../../services/suite.js'
import { contend } from './contention.js'
import { KINDS, type Store } from './stores.js'

const CONNECTIONS = 16
/** A share of what `npm run guards:contention` does: 10 000 units on each store. */
const UNITS = 220
const UNITS_UNGUARDED = 400

for (const kind of KINDS) {
  const title = `sixteen connections at once: ${kind.name}`
  const suite = () => {
    let store: Store
    beforeAll(async () => {
      store = await kind.start(CONNECTIONS)
    })
    afterAll(() => store?.stop())

    it.each(['table', 'row'] as const)(
      'loses no acknowledged unit and accepts no stale write (%s)',
      async (way) => {
        // Statements alone do not wait for a writer of another connection of SQLite.
        if (kind.needs === undefined && way === 'row') return
        const outcome = await contend(store, way, UNITS, 1)
        expect(outcome.value).toBe(outcome.acknowledged)
        expect(outcome.acknowledged + outcome.refused).toBe(UNITS)
        expect(outcome.refused).toBeGreaterThan(5)
        expect(outcome.acknowledged).toBeGreaterThan(UNITS / 20)
      },
      180_000,
    )

    it('does lose units without a guard: the run can fail', async () => {
      const outcome = await contend(store, 'unguarded', UNITS_UNGUARDED, 2)
      expect(outcome.acknowledged).toBe(UNITS_UNGUARDED)
      expect(outcome.value).toBeLessThan(UNITS_UNGUARDED)
    }, 180_000)
  }
  if (kind.needs === undefined) describe(title, suite)
  else describeWith(kind.needs, title, suite)
}
