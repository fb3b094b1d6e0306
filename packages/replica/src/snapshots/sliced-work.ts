import type { Clock } from '../platform.js'

/** A slice ends after this long, and the next one begins that much later: half of the time is left for everything else. */
const SLICE_MS = 3
/** The clock is looked at after as much work as it takes to write so many bytes: a fraction of a millisecond. */
const STEP_BYTES = 8 * 1024

export interface SliceOptions {
  readonly clock: Clock
  /** A slice also ends after about so many bytes. */
  readonly sliceBytes: number
  /** Runs a slice as a part of the member: what it throws stops it. */
  readonly guard: (action: () => void) => void
}

/**
 * Work that would keep a member from everything else for too long, done in slices. `step` does as much as it takes to read or
 * write about so many bytes, and says whether that was the last of it. What fits into one slice is done at once.
 */
export class SlicedWork {
  readonly #options: SliceOptions
  readonly #step: (bytes: number) => boolean
  #cancelTimer: (() => void) | undefined

  constructor(options: SliceOptions, step: (bytes: number) => boolean) {
    this.#options = options
    this.#step = step
  }

  /** Does the next slice. */
  start(): void {
    const { clock, sliceBytes, guard } = this.#options
    const step = Math.min(STEP_BYTES, sliceBytes)
    const begun = clock.monotonicMs()
    for (let work = 0; work < sliceBytes && clock.monotonicMs() - begun < SLICE_MS; work += step) {
      if (this.#step(step)) return
    }
    this.#cancelTimer = clock.after(SLICE_MS, () => guard(() => this.start()))
  }

  /** Gives up. */
  stop(): void {
    this.#cancelTimer?.()
  }
}
