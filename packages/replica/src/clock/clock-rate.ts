import { Reader } from '@leasehold/core'
import type { Entry, Term } from '@leasehold/raft'
import type { Logger } from '../platform.js'

/** Rates are compared over windows of this length, by this member's clock. */
export const RATE_WINDOW_MS = 10_000
/** So much faster than this member's clock the leader's may seem to run, as a part of the time that has passed. */
export const RATE_TOLERANCE = 0.1
/** A window with fewer entries says nothing: each of them may have been late. */
export const RATE_SAMPLES_MIN = 5
/** So many windows in a row must say the same: one alone is also seen after a pause of this member. */
export const RATE_WINDOWS = 2

interface Window {
  readonly startMs: number
  samples: number
  /** The least by which this member's clock was ahead of a stamp when its entry arrived, and when that was. */
  leastMs: number
  leastAtMs: number
}

/**
 * Compares the leader's clock with this member's, by the stamps of the leader's entries. Entries are late by different
 * times, so of each window only the one counts that was least late. A leader whose clock runs fast ends sessions before
 * their holders expect it; one that is slow ends them late, which is safe, and cannot be told from one that was paused.
 */
export class ClockRate {
  #term: Term = 0
  #window: Window | undefined
  #previous: Window | undefined
  #fastWindows = 0
  #reported = false

  /**
   * Entries of the leader of `term` have arrived at `nowMs`, by this member's monotonic clock. Returns by how many percent
   * its clock runs faster, once for each term; undefined: nothing to tell.
   */
  note(term: Term, entries: readonly Entry[], nowMs: number): number | undefined {
    if (term !== this.#term) this.#startTerm(term)
    const entry = entries.at(-1)
    // Older ones come when this member catches up: they are late by any time.
    if (this.#reported || entry?.kind !== 'normal' || entry.term !== term || entry.data.length === 0) return undefined
    // The stamp is the first field of an encoded entry.
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

  /** Notes the entries, and warns once per term when the leader's clock runs faster. */
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
    // Twice as fast and more is no clock: this member is catching up, or its machine was suspended.
    this.#fastWindows = gained > RATE_TOLERANCE && gained < 1 ? this.#fastWindows + 1 : 0
    if (this.#fastWindows < RATE_WINDOWS) return undefined
    this.#reported = true
    return Math.round(gained * 100)
  }
}
