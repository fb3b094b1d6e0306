import { crc32, type LockState, type StateView } from '@leasehold/core'
import type { Clock } from '../platform.js'
import type { StatePieces } from '../snapshots/snapshots.js'

/** A slice ends after this long, and the next one begins that much later: half of the time is left for everything else. */
const SLICE_MS = 3
/** The clock is looked at after as much work as it takes to write so many bytes: a fraction of a millisecond. */
const STEP_BYTES = 8 * 1024

export interface SnapshotMakerOptions {
  readonly clock: Clock
  /** A slice also ends after about so many bytes. */
  readonly sliceBytes: number
  /** Runs a slice as a part of the member: what it throws stops it. */
  readonly guard: (action: () => void) => void
  /** The snapshot is complete; it may run inside `start`. */
  readonly done: (state: StatePieces) => void
}

/**
 * Writes the lock state down as it is at the start, in slices, while entries go on being applied. What fits into one slice is
 * ready at once.
 */
export class SnapshotMaker {
  private readonly view: StateView
  private readonly pieces: Uint8Array[] = []
  private bytes = 0
  private checksum = 0
  private cancel: (() => void) | undefined

  constructor(
    state: LockState,
    private readonly options: SnapshotMakerOptions,
  ) {
    this.view = state.openView()
  }

  start(): void {
    const { clock, sliceBytes, guard, done } = this.options
    const step = Math.min(STEP_BYTES, sliceBytes)
    const begun = clock.monotonicMs()
    for (let work = 0; work < sliceBytes && clock.monotonicMs() - begun < SLICE_MS; work += step) {
      const complete = this.view.step(step)
      this.collect()
      if (complete) return done({ pieces: this.pieces, bytes: this.bytes, checksum: this.checksum })
    }
    this.cancel = clock.after(SLICE_MS, () => guard(() => this.start()))
  }

  /** Gives up. */
  drop(): void {
    this.cancel?.()
    this.view.close()
  }

  private collect(): void {
    for (const piece of this.view.take()) {
      this.pieces.push(piece)
      this.checksum = crc32(piece, this.checksum)
      this.bytes += piece.length
    }
  }
}
