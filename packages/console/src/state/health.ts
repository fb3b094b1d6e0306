import { computed, signal } from '@preact/signals'
import type { Problem } from '../api/types.js'

/** The failure of the latest requests for the state. */
export interface Failure {
  readonly why: string
  readonly failures: number
  /** On the monotonic clock. */
  readonly nextAttempt: number
}

/** When the shown state was received, on the monotonic clock. */
export const updatedAt = signal<number | undefined>(undefined)
export const failure = signal<Failure | undefined>(undefined)
/** The error response to the latest request: the key has no permission, or the request is wrong. */
export const refused = signal<Problem | undefined>(undefined)
/** Since when the queried member knows no leader; undefined while it knows one. */
export const leaderlessSince = signal<number | undefined>(undefined)

/** The monotonic clock, updated twice a second. */
export const now = signal(performance.now())

/** A state that is older than this while requests fail is stale. */
const STALE_MS = 2_000

/** Shorter times without a leader are not reported: elections take a moment. */
const LEADERLESS_MS = 1_500

export type Health = 'connecting' | 'live' | 'stale' | 'leaderless'

export const health = computed<Health>(() => {
  if (updatedAt.value === undefined) return 'connecting'
  // A single failure is not reported: another member usually responds at once.
  const lost = failure.value
  if (lost !== undefined && (lost.failures > 1 || now.value - updatedAt.value > STALE_MS)) return 'stale'
  const since = leaderlessSince.value
  return since !== undefined && now.value - since > LEADERLESS_MS ? 'leaderless' : 'live'
})

/** The moment that the page shows: it stops while no new state is received. */
export const shownNow = computed(() => {
  if (health.value === 'stale') return Math.min(now.value, updatedAt.value ?? now.value)
  if (health.value === 'leaderless') return leaderlessSince.value ?? now.value
  return now.value
})

const TICK_MS = 500

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = performance.now()
  }, TICK_MS)
}
