import type { Limits } from './operations.js'

/** Requests of a session that may be open at once. Acquires and writes may use half of them, the rest is for releases. */
export const REQUEST_WINDOW = 1024

/** Unseen changes of a session, from which on it is granted nothing more. */
export const CHANGES_MAX = 2 * REQUEST_WINDOW

/** Bytes of a session's client text, and of the actor and reason of a steal. */
export const TEXT_BYTES_MAX = 256

/** Permits of a semaphore. */
export const PERMITS_MAX = 65_536

/**
 * The highest feature level of this code. Encoding and behaviour follow the level in the state, so that all members behave
 * alike. Level 2 adds floors of the counter, and writes ids in snapshots as differences.
 */
export const LEVEL_MAX = 2
/** The level from which on `configure` accepts a floor. */
export const LEVEL_FLOOR = 2

/** The limits of a new state, until `configure` changes them. They are part of the replicated state. */
export const DEFAULT_LIMITS: Limits = {
  sessions: 200_000,
  holds: 2_000_000,
  holdsPerSession: 200_000,
  waitersPerLock: 20_000,
  locksPerAcquire: 64,
  dataBytes: 4096,
  registers: 100_000,
  registerBytes: 65_536,
  ttlMinMs: 100,
  ttlMaxMs: 86_400_000,
  lockDelayMaxMs: 60_000,
}

export const LIMIT_NAMES = Object.keys(DEFAULT_LIMITS).sort() as (keyof Limits)[]
