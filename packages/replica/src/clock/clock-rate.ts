import { Reader } from '@leasehold/core'
import type { Entry, Term } from '@leasehold/raft'
import type { Logger } from '../platform.js'

/** Length of a comparison window, by this member's clock. */
export const RATE_WINDOW_MS = 10_000
/** Tolerated excess rate of the leader's clock, as a fraction of the elapsed time. */
export const RATE_TOLERANCE = 0.1
/** Least number of entries in a window. With fewer, all of them may have been late. */
export const RATE_SAMPLES_MIN = 5
/** Consecutive windows that must show a fast clock. A single one also occurs after a pause of this member. */
export const RATE_WINDOWS = 2

interface Window {
  readonly startMs: number
  samples: number
  /** The least lead of this member's clock over a timestamp at the arrival of its entry, and when that was. */
  leastMs: number
  leastAtMs: number
}

/**
 * Compares the leader's clock with this member's, by the timestamps of the leader's entries. Entries arrive with different
 * delays, so only the least delayed one of each window counts. A fast leader clock ends sessions before their holders expect
 * it. A slow one ends them late, which is safe, and cannot be distinguished from a paused leader.
 */
export class ClockRate {
  #term: Term = 0
  #window: Window | undefined
  #previous: Window | undefined
  #fastWindows = 0
  #reported = false

  /**
   * Records entries from the leader of `term` that arrived at `nowMs`, by this member's monotonic clock. Returns by how many
   * percent the leader's clock runs faster, at most once per term; undefined otherwise.
   */
  note(term: Term, entries: readonly Entry[], nowMs: number): number | undefined {
    if (term !== this.#term) this.#startTerm(term)
    const entry = entries.at(-1)
    // Entries of older terms arrive while this member catches up: their delay means nothing.
    if (this.#reported || entry?.kind !== 'normal' || entry.term !== term || entry.data.length === 0) return undefined
    // The timestamp is the first field of an encoded entry.
    const ahead = nowMs - new Reader(entry.data).varuint()
    const percent =
      this.#window && nowMs - this.#window.startMs >= RATE_WINDOW_MS ? this.#closeWindow(this.#window) : undefined
    this.#window ??= { startMs: nowMs, samples: 0, leastMs: Number.POSITIVE_INFINITY, leastAtMs: nowMs }
    this.#window.samples++
    if (ahead < this.#window.leastMs) {
      this.#window.leastMs = ahead
      this.#window.leastAtMs = nowMs
    }
    return percent
  }

  /** Records the entries, and warns once per term when the leader's clock runs faster. */
  compare(term: Term, entries: readonly Entry[], nowMs: number, log: Logger): void {
    const percent = this.note(term, entries, nowMs)
    if (percent === undefined) return
    log.warn('the clock of the leader runs faster than the one here: sessions may end too early', { percent, term })
  }

  #startTerm(term: Term): void {
    this.#term = term
    this.#window = undefined
    this.#previous = undefined
    this.#fastWindows = 0
    this.#reported = false
  }

  #closeWindow(window: Window): number | undefined {
    this.#window = undefined
    if (window.samples < RATE_SAMPLES_MIN) return undefined
    const previous = this.#previous
    this.#previous = window
    if (!previous) return undefined
    const passed = Math.max(RATE_WINDOW_MS, window.leastAtMs - previous.leastAtMs)
    const gained = (previous.leastMs - window.leastMs) / passed
    // Twice the rate or more is not a clock: this member is catching up, or its machine was suspended.
    this.#fastWindows = gained > RATE_TOLERANCE && gained < 1 ? this.#fastWindows + 1 : 0
    if (this.#fastWindows < RATE_WINDOWS) return undefined
    this.#reported = true
    return Math.round(gained * 100)
  }
}
