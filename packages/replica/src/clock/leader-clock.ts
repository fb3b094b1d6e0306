import { assert, type Millis } from '@leasehold/core'

/** A timestamp is at most this far ahead of the applied cluster time: without a quorum, time stands still. */
export const STAMP_AHEAD_MAX_MS = 2000
/** Two successive readings differ by at most this many ticks: a paused leader could not serve renewals. */
export const PAUSE_TICKS_MAX = 2

/**
 * The clock for the timestamps of entries: the highest timestamp in the leader's log at the election, plus the monotonic time
 * since then. Read at every tick and whenever an entry is closed.
 */
export class LeaderClock {
  readonly #tickMs: number
  #value: number
  #reading: number

  /** `base`: the highest timestamp in log and snapshot. `monotonicMs`: the machine's clock now. */
  constructor(base: number, monotonicMs: number, tickMs: number) {
    this.#tickMs = tickMs
    this.#value = base
    this.#reading = monotonicMs
  }

  /** Advances to `monotonicMs`, by at most {@link PAUSE_TICKS_MAX}. Returns the new time. */
  read(monotonicMs: number): number {
    const passed = Math.max(0, monotonicMs - this.#reading)
    this.#reading = Math.max(this.#reading, monotonicMs)
    this.#value += Math.min(passed, PAUSE_TICKS_MAX * this.#tickMs)
    return this.#value
  }

  /** Returns the timestamp for an entry. Time beyond the applied time + {@link STAMP_AHEAD_MAX_MS} is dropped. */
  stamp(monotonicMs: number, appliedMs: number): Millis {
    const before = this.#value
    this.#value = Math.min(this.read(monotonicMs), Math.max(before, appliedMs + STAMP_AHEAD_MAX_MS))
    assert(this.#value >= before, () => `the leader's clock went from ${before} to ${this.#value}`)
    return this.#value as Millis
  }
}
