import type { ClientPlatform } from '../platform.js'

/** A new base is taken after this long at the latest, so that rounding errors of the clocks do not add up. */
const REBASE_MS = 100
/** Clocks that diverge by more than this since the base have stepped or stopped: a new base is taken at once. */
const DIVERGED_MS = 5

/**
 * Time that has passed for deadlines, in milliseconds: it grows by max(Δ monotonic, Δ wall, 0) between samples, because
 * a monotonic clock stops during suspend and a wall clock may step. It is never behind the monotonic clock.
 *
 * Both clocks tick in whole steps and not at the same instant, so adding the larger difference at *every* call would
 * count each millisecond twice under frequent calls. Differences are therefore taken against a base that moves every
 * {@link REBASE_MS}, or as soon as the clocks disagree.
 */
export class Elapsed {
  readonly #platform: ClientPlatform
  #monotonicBase: number
  #wallBase: number
  #base = 0
  #last = 0

  constructor(platform: ClientPlatform) {
    this.#platform = platform
    this.#monotonicBase = platform.monotonicMs()
    this.#wallBase = platform.wallMs()
  }

  now(): number {
    const monotonic = this.#platform.monotonicMs()
    const wall = this.#platform.wallMs()
    const byMonotonic = monotonic - this.#monotonicBase
    const byWall = wall - this.#wallBase
    const now = this.#after(byMonotonic, byWall)
    if (byMonotonic >= REBASE_MS || Math.abs(byWall - byMonotonic) > DIVERGED_MS) {
      this.#monotonicBase = monotonic
      this.#wallBase = wall
      this.#base = now
    }
    this.#last = now
    return now
  }

  /** The value of {@link Elapsed.now} without taking a sample: for outside observers, which must not change anything. */
  peek(): number {
    const byMonotonic = this.#platform.monotonicMs() - this.#monotonicBase
    return this.#after(byMonotonic, this.#platform.wallMs() - this.#wallBase)
  }

  #after(byMonotonic: number, byWall: number): number {
    return Math.max(this.#last, this.#base + Math.max(byMonotonic, byWall, 0))
  }
}
