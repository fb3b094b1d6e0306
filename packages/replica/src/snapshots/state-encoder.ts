import { crc32, type LockState, type SnapshotWriter } from '@leasehold/core'
import type { StatePieces } from './snapshot-store.js'
import { type SliceOptions, SlicedWork } from './sliced-work.js'

export interface StateEncoderOptions extends SliceOptions {
  /** Runs when the snapshot is complete, possibly inside `start`. */
  readonly done: (state: StatePieces) => void
}

/** Encodes the lock state as of its creation, in slices, while further entries are applied. */
export class StateEncoder {
  readonly #options: StateEncoderOptions
  readonly #view: SnapshotWriter
  readonly #work: SlicedWork
  readonly #pieces: Uint8Array[] = []
  #bytes = 0
  #checksum = 0

  constructor(state: LockState, options: StateEncoderOptions) {
    this.#options = options
    this.#view = state.beginSnapshot()
    this.#work = new SlicedWork(options, (work) => this.#step(work))
  }

  start(): void {
    this.#work.start()
  }

  /** Stops and discards the work. */
  cancel(): void {
    this.#work.stop()
    this.#view.close()
  }

  #step(work: number): boolean {
    const complete = this.#view.step(work)
    for (const piece of this.#view.take()) {
      this.#pieces.push(piece)
      this.#checksum = crc32(piece, this.#checksum)
      this.#bytes += piece.length
    }
    if (complete) this.#options.done({ pieces: this.#pieces, bytes: this.#bytes, checksum: this.#checksum })
    return complete
  }
}
