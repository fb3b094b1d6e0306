import type { LockState } from '@leasehold/core'
import type { Member } from '../member.js'

export type Reader = Parameters<Member<LockState>['read']>[0]

const NO_READERS: readonly Reader[] = []

/** Most reads that wait. More are refused with `limit`. */
export const READS_MAX = 65_536

/**
 * Linearizable reads (thesis 6.4). Waiting reads share one round, which consensus confirms at an index; they run once that
 * index is applied. Reads that arrive during a round wait for the next one.
 */
export class Reads {
  #waiting: Reader[] = []
  #round: { readonly context: number; readonly readers: readonly Reader[] } | undefined
  #confirmed: { readonly index: number; readonly readers: readonly Reader[] }[] = []
  #nextContext = 1
  #ticks = 0

  /** How many reads wait for a round. */
  get count(): number {
    return this.#waiting.length
  }

  /** Whether {@link Reads.begin} would begin a round. */
  get canBegin(): boolean {
    return this.#waiting.length > 0 && this.#round === undefined
  }

  add(reader: Reader): void {
    this.#waiting.push(reader)
  }

  /** Starts a round and returns its context for consensus; undefined when no read waits or a round is in progress. */
  begin(): number | undefined {
    if (this.#waiting.length === 0 || this.#round) return undefined
    this.#round = { context: this.#nextContext++, readers: this.#waiting }
    this.#waiting = []
    return this.#round.context
  }

  /** Requeues the reads of a round that consensus has dropped. Returns whether it was the current round. */
  lost(context: number): boolean {
    if (this.#round?.context !== context) return false
    this.#waiting = [...this.#round.readers, ...this.#waiting]
    this.#round = undefined
    return true
  }

  confirm(context: number, index: number): void {
    if (this.#round?.context !== context) return
    this.#confirmed.push({ index, readers: this.#round.readers })
    this.#round = undefined
    this.#ticks = 0
  }

  /** Counts a tick. Returns whether reads have waited for more than `ticksMax` without a confirmed round. */
  tick(ticksMax: number): boolean {
    this.#ticks = this.#round === undefined && this.#waiting.length === 0 ? 0 : this.#ticks + 1
    return this.#ticks > ticksMax
  }

  /** Removes and returns the reads that may run at `applied`, in order. */
  ready(applied: number): readonly Reader[] {
    if (this.#confirmed.length === 0) return NO_READERS
    const ready: Reader[] = []
    while (this.#confirmed.length > 0 && (this.#confirmed[0] as { index: number }).index <= applied) {
      ready.push(...(this.#confirmed.shift() as { readers: readonly Reader[] }).readers)
    }
    return ready
  }

  /** Removes and returns all reads, to reject them. */
  drain(): Reader[] {
    const all = [
      ...this.#confirmed.flatMap((round) => round.readers),
      ...(this.#round?.readers ?? []),
      ...this.#waiting,
    ]
    this.#confirmed = []
    this.#round = undefined
    this.#waiting = []
    this.#ticks = 0
    return all
  }
}
