import type { Clock, Random } from '@leasehold/replica'
import type { Process } from '../process.js'

/** What a wall clock that was never set shows when a world begins: 2026-12-01T00:00:00Z. */
const WORLD_BEGINS_MS = 1_796_083_200_000

/** What the wall clocks of a world show until a fault sets them. */
export function worldWallMs(nowUs: number): number {
  return WORLD_BEGINS_MS + Math.floor(nowUs / 1000)
}

/** The member's clock: its machine's monotonic one, in whole milliseconds. */
export function replicaClock(process: Process): Clock {
  return {
    monotonicMs: () => Math.floor(process.machine.clockUs('monotonic') / 1000),
    wallMs: () => worldWallMs(process.machine.clockUs('wall')),
    after: (delayMs, callback) => process.after(delayMs * 1000, callback),
  }
}

/** The member's random numbers: draws of the world, never the same after a restart. */
export function replicaRandom(process: Process): Random {
  const draws = process.random('member')
  return { bytes: (length) => draws.bytes(length), below: (limit) => draws.below(limit) }
}
