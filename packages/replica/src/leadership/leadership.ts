import { CompactingMap, type Index, type Millis } from '@leasehold/core'
import type { Term } from '@leasehold/raft'
import type { LeaderClock } from '../clock/leader-clock.js'
import type { Waiting } from '../driver/proposals.js'

/** While any session, wait or delay exists, time moves at least this often. */
export const STAMP_EVERY_MS = 1000

/**
 * The time of this member as leader of one term. Its first entry carries only the stamp; until that is applied nothing
 * else is proposed.
 */
export class Leadership {
  ready = false
  /** The highest stamp that was proposed. */
  lastStamp: number
  /** Who waits for which entry. */
  readonly pending = new CompactingMap<Index, readonly Waiting[]>()

  constructor(
    readonly term: Term,
    /** Index of the first entry. */
    readonly opening: Index,
    readonly clock: LeaderClock,
    base: number,
  ) {
    this.lastStamp = base
  }

  stamp(monotonicMs: number, appliedMs: number): Millis {
    return this.clock.stamp(monotonicMs, appliedMs)
  }

  /** Consensus has taken an entry with this stamp. One that it refuses moves no time: what is due stays due. */
  proposed(index: Index, at: Millis, batch: readonly Waiting[]): void {
    this.lastStamp = at
    this.pending.set(index, batch)
  }

  /** Who waits for an entry, once it is applied. */
  take(index: Index): readonly Waiting[] | undefined {
    const batch = this.pending.get(index)
    if (batch) this.pending.delete(index)
    return batch
  }

  /** Whether an entry is wanted only for its stamp. */
  needsStamp(monotonicMs: number, due: number | undefined, busy: boolean): boolean {
    const now = this.clock.read(monotonicMs)
    if (due !== undefined && due <= now && this.lastStamp < due) return true
    return busy && now - this.lastStamp >= STAMP_EVERY_MS
  }
}
