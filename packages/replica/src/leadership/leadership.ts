import { CompactingMap, type Index, type Millis } from '@leasehold/core'
import type { Term } from '@leasehold/raft'
import type { LeaderClock } from '../clock/leader-clock.js'
import type { Waiting } from '../driver/proposals.js'

/** Longest interval between timestamps while any session, wait or delay exists, in milliseconds. */
export const STAMP_EVERY_MS = 1000

/**
 * This member's leadership in one term. Nothing is proposed after the first entry of the term until that entry is applied.
 */
export class Leadership {
  ready = false
  /** The highest timestamp that was proposed. */
  lastStamp: number
  /** Commands of proposed entries that are not yet applied. */
  readonly pending = new CompactingMap<Index, readonly Waiting[]>()

  constructor(
    readonly term: Term,
    /** Index of the first entry of the term. */
    readonly opening: Index,
    readonly clock: LeaderClock,
    base: number,
  ) {
    this.lastStamp = base
  }

  stamp(monotonicMs: number, appliedMs: number): Millis {
    return this.clock.stamp(monotonicMs, appliedMs)
  }

  /** Records an entry that consensus accepted. A refused entry does not advance time, so deadlines stay due. */
  proposed(index: Index, at: Millis, batch: readonly Waiting[]): void {
    this.lastStamp = at
    this.pending.set(index, batch)
  }

  /** Removes and returns the commands of an entry that has been applied. */
  take(index: Index): readonly Waiting[] | undefined {
    const batch = this.pending.get(index)
    if (batch) this.pending.delete(index)
    return batch
  }

  /** Whether an entry is needed only to advance time. */
  needsStamp(monotonicMs: number, due: number | undefined, busy: boolean): boolean {
    const now = this.clock.read(monotonicMs)
    if (due !== undefined && due <= now && this.lastStamp < due) return true
    return busy && now - this.lastStamp >= STAMP_EVERY_MS
  }
}
