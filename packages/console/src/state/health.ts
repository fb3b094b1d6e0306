import { computed, signal } from '@preact/signals'
import type { Problem } from '../api/types.js'

/** How it went the last time that the service was asked for the state. */
export interface Failure {
  readonly why: string
  readonly failures: number
  /** Of the monotonic clock. */
  readonly nextTry: number
}

/** When the state that is shown was told. */
export const toldAt = signal<number | undefined>(undefined)
export const failure = signal<Failure | undefined>(undefined)
/** The question was refused: this key may not ask it, or it makes no sense. */
export const refused = signal<Problem | undefined>(undefined)
/** Since when the member that is asked knows no leader; undefined: it knows one. */
export const leaderlessSince = signal<number | undefined>(undefined)

/** This machine's monotonic clock, twice a second. */
export const now = signal(performance.now())

/** A state that is older than this, and has no successor, is stale. */
const STALE_MS = 2_000

/** Elections take a moment; only what lasts is worth a word. */
const LEADERLESS_MS = 1_500

export type Health = 'connecting' | 'live' | 'stale' | 'leaderless'

export const health = computed<Health>(() => {
  if (toldAt.value === undefined) return 'connecting'
  // One lost answer that another member makes good at once is not worth a word.
  const lost = failure.value
  if (lost !== undefined && (lost.failures > 1 || now.value - toldAt.value > STALE_MS)) return 'stale'
  const since = leaderlessSince.value
  return since !== undefined && now.value - since > LEADERLESS_MS ? 'leaderless' : 'live'
})

/** The moment that the page shows: it stands still while nothing new is known. */
export const shownNow = computed(() => {
  if (health.value === 'stale') return Math.min(now.value, toldAt.value ?? now.value)
  if (health.value === 'leaderless') return leaderlessSince.value ?? now.value
  return now.value
})

const TICK_MS = 500

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = performance.now()
  }, TICK_MS)
}
