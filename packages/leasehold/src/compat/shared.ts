import { type Hold, holdInternals, type Locks } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'

/** The shortest lease of a session, in ms. Shorter durations are enforced by the client only. */
export const LEASE_MIN_MS = 100

/** Formats milliseconds for the client, which rejects a small bare number as a mistake. */
export const millis = (ms: number): string => `${Math.max(0, Math.round(ms))}ms`

/** Returns the client, passed where the other library takes its connection. @throws InvalidError */
export function locksOf(client: unknown, what: string): Locks {
  const like = client as Partial<Locks> | null
  if (typeof like === 'object' && like !== null) {
    if (typeof like.acquire === 'function' && typeof like.adopt === 'function') return client as Locks
  }
  throw new InvalidError(`${what} takes a client of leasehold instead of a Redis client`, {
    hint: "make one with createLocks('http://127.0.0.1:4100')",
  })
}

/** Checks that `value` is a whole number, at least `min`. @throws InvalidError */
export function wholeMs(value: unknown, what: string, { min = 0 }: { min?: number } = {}): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value
  throw new InvalidError(`${what} must be an integer value in milliseconds, at least ${min}, not ${String(value)}`)
}

/** The lease of a hold that has a session of its own: the caller can renew, limit and stop it. */
export interface Lease {
  renewNow(): Promise<boolean>
  limit(limitMs: number): void
  stopRenewing(): void
}

export const leaseOf = (hold: Hold): Lease => hold[holdInternals].host
