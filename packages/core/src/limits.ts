import type { Limits } from './operations.js'

/** Numbers of a session's requests that may be open at once (W). Acquires and writes get `limit` from half of it on. */
export const REQUEST_WINDOW = 1024

/** Changes that are kept for a session which does not say what it has seen. */
export const CHANGES_MAX = 2 * REQUEST_WINDOW

/** Bytes of a session's free text, and of the actor and reason of a steal. */
export const TEXT_BYTES_MAX = 256

/** Permits of a semaphore. */
export const PERMITS_MAX = 65_536

/**
 * The highest feature level that this code knows. Encoding and behaviour belong to the level in the state.
 * Level 2 adds floors of the counter, and writes ids in snapshots as differences.
 */
export const LEVEL_MAX = 2
/** From this level on, `configure` takes a floor. */
export const LEVEL_FLOOR = 2

/** Limits are part of the replicated state; these hold until `configure` changes them. */
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
