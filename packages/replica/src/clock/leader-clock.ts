import { assert, type Millis } from '@leasehold/core'

/** A stamp runs ahead of the applied cluster time by at most this much: without a quorum no time passes. */
export const STAMP_AHEAD_MAX_MS = 2000
/** Two successive readings differ by at most this many ticks: a leader that was paused did not serve renewals. */
export const PAUSE_TICKS_MAX = 2

/**
 * The clock that stamps entries: monotonic time since the election, added to the highest stamp that the leader's log had
 * then. Read at every tick and at every closing of an entry.
 */
export class LeaderClock {
  readonly #tickMs: number
  #value: number
  #reading: number

  /** `base`: the highest stamp in log and snapshot. `monotonicMs`: the machine's clock, now. */
  constructor(base: number, monotonicMs: number, tickMs: number) {
    this.#tickMs = tickMs
    this.#value = base
    this.#reading = monotonicMs
  }

  /** Lets time pass up to `monotonicMs`, but not more than the pause cap. */
  read(monotonicMs: number): number {
    const passed = Math.max(0, monotonicMs - this.#reading)
    this.#reading = Math.max(this.#reading, monotonicMs)
    this.#value += Math.min(passed, PAUSE_TICKS_MAX * this.#tickMs)
    return this.#value
  }

  /** The stamp of an entry that is closed now. What goes beyond the applied time + 2 s is dropped for good. */
  stamp(monotonicMs: number, appliedMs: number): Millis {
    const before = this.#value
    this.#value = Math.min(this.read(monotonicMs), Math.max(before, appliedMs + STAMP_AHEAD_MAX_MS))
    assert(this.#value >= before, () => `the leader's clock went from ${before} to ${this.#value}`)
    return this.#value as Millis
  }
}
