import { StaleTokenError } from '@leasehold/core'
import { holdOf } from '../../../packages/fence/test/support/holds.js'
import { LapsingLock, randomOf, stumble } from '../../../packages/fence/test/support/lapsing-lock.js'
import type { Store } from './stores.js'

/** How the counter is read and written: under the guard, on the row, or as if nothing could happen. */
export type Way = 'table' | 'row' | 'unguarded' | 'unopened'
export const WAYS: readonly Way[] = ['table', 'row', 'unguarded', 'unopened']

export interface Outcome {
  readonly units: number
  readonly acknowledged: number
  readonly refused: number
  /** The value at the end: below `acknowledged` when units were lost. */
  readonly value: number
  readonly seconds: number
}

const LEASE_MIN_MS = 4
const LEASE_MAX_MS = 30
const WARM_UP_UNITS = 10
const ROW = { table: 'counter', where: { id: 1 } }
const READ = 'SELECT n FROM counter WHERE id = 1'

interface Unit {
  read(token: bigint, worker: number): Promise<number>
  write(token: bigint, n: number, worker: number): Promise<unknown>
}

function unitOf(store: Store, way: Way): Unit {
  const read = async (worker: number) => Number((await store.query(READ, worker))[0]?.n)
  if (way === 'table') {
    const guards = Array.from({ length: store.connections }, (_, worker) => store.guard(undefined, worker))
    const guard = (worker: number) => guards[worker % guards.length] as (typeof guards)[0]
    return {
      read: (token, worker) => guard(worker).with(holdOf(token), (tx) => store.read(tx)),
      write: (token, n, worker) => guard(worker).with(holdOf(token), (tx) => store.write(tx, n)),
    }
  }
  const fenced = (token: bigint, n: number, worker: number) =>
    store.fencedUpdate(holdOf(token), { ...ROW, set: { n } }, worker)
  if (way === 'unopened') return { read: (_token, worker) => read(worker), write: fenced }
  if (way === 'row') {
    return {
      read: async (token, worker) => Number((await store.fencedUpdate(holdOf(token), ROW, worker))?.n),
      write: fenced,
    }
  }
  return {
    read: (_token, worker) => read(worker),
    write: (_token, n, worker) => store.change(`UPDATE counter SET n = ${n} WHERE id = 1`, worker),
  }
}

/** Twice as long as a unit takes on this machine now: most units fit, those that stumble do not. Leaves the value at 0. */
async function leaseFor(unit: Unit): Promise<number> {
  const start = performance.now()
  for (let i = 0; i < WARM_UP_UNITS; i++) {
    await unit.read(1n, 0)
    await unit.write(1n, 0, 0)
  }
  const unitMs = (performance.now() - start) / WARM_UP_UNITS
  return Math.min(Math.max(2 * unitMs, LEASE_MIN_MS), LEASE_MAX_MS)
}

/**
 * As many workers as the store has connections, under a lock whose leases are far too short for their pauses: each opens and
 * reads, stumbles, and writes one more.
 */
export async function contend(store: Store, way: Way, units: number, seed: number): Promise<Outcome> {
  await store.change('DELETE FROM leasehold_guard')
  await store.change('UPDATE counter SET n = 0, leasehold_token = 0, leasehold_lock = NULL WHERE id = 1')
  const unit = unitOf(store, way)
  const leaseMs = await leaseFor(unit)
  const lock = new LapsingLock(leaseMs)
  const start = performance.now()
  let begun = 0
  let acknowledged = 0
  let refused = 0
  const worker = async (id: number) => {
    const random = randomOf(seed + id)
    while (begun++ < units) {
      const { token, release } = await lock.acquire()
      try {
        const seen = await unit.read(token, id)
        await stumble(random, leaseMs)
        await unit.write(token, seen + 1, id)
        acknowledged++
      } catch (error) {
        if (!(error instanceof StaleTokenError)) throw error
        refused++
      } finally {
        release()
      }
    }
  }
  await Promise.all(Array.from({ length: store.connections }, (_, id) => worker(id)))
  const value = Number((await store.query(READ))[0]?.n)
  return { units, acknowledged, refused, value, seconds: Math.round((performance.now() - start) / 100) / 10 }
}
