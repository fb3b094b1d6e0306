import type { Clock } from '../platform.js'

/** Length of a slice and of the pause after it, in milliseconds. Half of the time stays free for other work. */
const SLICE_MS = 3
/** Bytes of work between two readings of the clock: a fraction of a millisecond. */
const STEP_BYTES = 8 * 1024

export interface SliceOptions {
  readonly clock: Clock
  /** A slice also ends after about this many bytes. */
  readonly sliceBytes: number
  /** Runs a slice as a part of the member. An error stops the member. */
  readonly guard: (action: () => void) => void
}

/**
 * Long work, done in slices with pauses between them. `step` processes about the given number of bytes and returns whether
 * the work is complete. Work that fits into one slice completes within {@link SlicedWork.start}.
 */
export class SlicedWork {
  readonly #options: SliceOptions
  readonly #step: (bytes: number) => boolean
  #cancelTimer: (() => void) | undefined

  constructor(options: SliceOptions, step: (bytes: number) => boolean) {
    this.#options = options
    this.#step = step
  }

  /** Runs the next slice. */
  start(): void {
    const { clock, sliceBytes, guard } = this.#options
    const step = Math.min(STEP_BYTES, sliceBytes)
    const begun = clock.monotonicMs()
    for (let work = 0; work < sliceBytes && clock.monotonicMs() - begun < SLICE_MS; work += step) {
      if (this.#step(step)) return
    }
    this.#cancelTimer = clock.after(SLICE_MS, () => guard(() => this.start()))
  }

  /** Stops the work. */
  stop(): void {
    this.#cancelTimer?.()
  }
}
