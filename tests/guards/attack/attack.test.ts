import { describe, expect, it } from 'vitest'
import { describeWith } from '../../services/suite.js'
import { type Store, attackOn } from './targets.js'

const UNITS = 240
const UNITS_UNGUARDED = 120
const PROCESSES = 5

/** A short share of `npm run guards:attack`, which runs sixteen processes and 10 000 units on each store. */
function storms(store: Store, seed: number): void {
  it('loses no acknowledged unit and accepts no stale write', async () => {
    const { acknowledged, refused, unknown, value } = await attackOn(store, {
      guarded: true,
      units: UNITS,
      seed,
      processes: PROCESSES,
    })
    expect(value).toBeGreaterThanOrEqual(acknowledged)
    expect(value).toBeLessThanOrEqual(acknowledged + unknown)
    expect(acknowledged + refused + unknown).toBe(UNITS)
    expect(unknown).toBeLessThan(UNITS / 10)
    expect(refused).toBeGreaterThan(5)
    // Few get through on a busy machine; that some do shows that the run has done something.
    expect(acknowledged).toBeGreaterThan(3)
  }, 240_000)

  it('does lose units without the guard: the run can fail', async () => {
    const { acknowledged, value } = await attackOn(store, {
      guarded: false,
      units: UNITS_UNGUARDED,
      seed,
      processes: PROCESSES,
    })
    expect(value).toBeLessThan(acknowledged)
  }, 240_000)
}

describeWith('Redis', 'processes at one key of Redis', () => storms('redis', 11))
describe('processes at one file', () => storms('fs', 12))
describe('processes at one register', () => storms('register', 13))
