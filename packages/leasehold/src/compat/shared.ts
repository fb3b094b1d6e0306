import { type Hold, holdInternals, type Locks } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'

/** Shortest lease of a session. Shorter times are kept on this side only. */
export const LEASE_MIN_MS = 100

/** Milliseconds as the client takes them: a bare small number would be taken for a mistake. */
export const millis = (ms: number): string => `${Math.max(0, Math.round(ms))}ms`

/** The client that stands where the other library takes its connection. @throws InvalidError */
export function locksOf(client: unknown, what: string): Locks {
  const like = client as Partial<Locks> | null
  if (typeof like === 'object' && like !== null) {
    if (typeof like.acquire === 'function' && typeof like.adopt === 'function') return client as Locks
  }
  throw new InvalidError(`${what} takes a client of leasehold where it took a Redis client`, {
    hint: "createLocks('http://127.0.0.1:4100') makes one",
  })
}

/** A whole number of milliseconds within bounds. @throws InvalidError */
export function wholeMs(value: unknown, what: string, { min = 0 }: { min?: number } = {}): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min) return value
  throw new InvalidError(`${what} must be an integer value in milliseconds, at least ${min}, not ${String(value)}`)
}

/** The session that only this hold lives in: its lease can be renewed and limited by hand. */
export interface Lease {
  renewNow(): Promise<boolean>
  limit(limitMs: number): void
  stopRenewing(): void
}

export const leaseOf = (hold: Hold): Lease => hold[holdInternals].host
