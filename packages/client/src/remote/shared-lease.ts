import { LOST_REASONS, type LostReason } from '@leasehold/core'

const BYTES = 4 * 8
const MONOTONIC = 0
const WALL = 1
/** The place of the reason in {@link LOST_REASONS}, from 1. */
const ENDED = 2
const CONGESTED = 3

/**
 * The state of a session's lease in memory that another thread reads at any moment, also after its event loop
 * was blocked: when the last acknowledged renewal was sent, by both clocks, and whether the session has ended.
 *
 * The two times are written one after the other; last the one that shows a new renewal.
 */
export class SharedLease {
  readonly buffer: SharedArrayBuffer
  readonly #cells: BigInt64Array

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(BYTES)) {
    this.buffer = buffer
    this.#cells = new BigInt64Array(buffer)
  }

  /** @param monotonicMs on a clock that both threads read */
  acknowledged(monotonicMs: number, wallMs: number): void {
    Atomics.store(this.#cells, WALL, micros(wallMs))
    Atomics.store(this.#cells, MONOTONIC, micros(monotonicMs))
  }

  /** Milliseconds since the last acknowledged renewal was sent. */
  sinceAcknowledgedMs(monotonicMs: number, wallMs: number): number {
    const byMonotonic = micros(monotonicMs) - Atomics.load(this.#cells, MONOTONIC)
    const byWall = micros(wallMs) - Atomics.load(this.#cells, WALL)
    return Math.max(Number(byMonotonic), Number(byWall), 0) / 1000
  }

  /** Changes with every acknowledged renewal. */
  get renewals(): bigint {
    return Atomics.load(this.#cells, MONOTONIC)
  }

  end(reason: LostReason): void {
    Atomics.store(this.#cells, ENDED, BigInt(LOST_REASONS.indexOf(reason) + 1))
  }

  get ended(): LostReason | undefined {
    return LOST_REASONS[Number(Atomics.load(this.#cells, ENDED)) - 1]
  }

  set congested(congested: boolean) {
    Atomics.store(this.#cells, CONGESTED, congested ? 1n : 0n)
  }

  get congested(): boolean {
    return Atomics.load(this.#cells, CONGESTED) !== 0n
  }
}

function micros(ms: number): bigint {
  return BigInt(Math.floor(ms * 1000))
}
