import type { LockState } from '@leasehold/core'
import type { Member } from '../member.js'

export type Reader = Parameters<Member<LockState>['read']>[0]

const NO_READERS: readonly Reader[] = []

/** Reads that wait; more are refused with `limit`. */
export const READS_MAX = 65_536

/**
 * Linearizable reads (thesis 6.4): those that came together go in one round, which consensus confirms at an index; they
 * run once that index is applied. What comes during a round waits for the next.
 */
export class Reads {
  #waiting: Reader[] = []
  #round: { readonly context: number; readonly readers: readonly Reader[] } | undefined
  #confirmed: { readonly index: number; readonly readers: readonly Reader[] }[] = []
  #nextContext = 1
  #ticks = 0

  /** How many wait for a round. */
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

  /** Begins a round. Returns what consensus is asked with; undefined: nothing waits, or a round is under way. */
  begin(): number | undefined {
    if (this.#waiting.length === 0 || this.#round) return undefined
    this.#round = { context: this.#nextContext++, readers: this.#waiting }
    this.#waiting = []
    return this.#round.context
  }

  /** Consensus has dropped the question of the present round: its readers are asked for again. True if there are any. */
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

  /** Whether no round has been confirmed for `ticksMax`, though some wait for one: also while none can be asked for. */
  tick(ticksMax: number): boolean {
    this.#ticks = this.#round === undefined && this.#waiting.length === 0 ? 0 : this.#ticks + 1
    return this.#ticks > ticksMax
  }

  /** Those that may run at `applied`, in order. */
  ready(applied: number): readonly Reader[] {
    if (this.#confirmed.length === 0) return NO_READERS
    const ready: Reader[] = []
    while (this.#confirmed.length > 0 && (this.#confirmed[0] as { index: number }).index <= applied) {
      ready.push(...(this.#confirmed.shift() as { readers: readonly Reader[] }).readers)
    }
    return ready
  }

  /** Takes all that wait, wherever, to be refused. */
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
