import { CompactingMap, Reader } from '@leasehold/core'
import type { Entry, Index } from '@leasehold/raft'

/** The timestamps of entries in the log that are not yet applied. A new leader's clock starts at the highest. */
export class PendingTimestamps {
  readonly #byIndex = new CompactingMap<Index, number>()
  #last: Index = 0

  /** Records entries that were appended to the log, replacing its suffix from the first of them on. */
  note(entries: readonly Entry[]): void {
    const first = entries[0]
    if (!first) return
    for (let index = first.index; index <= this.#last; index++) this.#byIndex.delete(index)
    this.#last = first.index + entries.length - 1
    for (const entry of entries) {
      // The timestamp is the first field of an encoded entry.
      if (entry.kind === 'normal' && entry.data.length > 0)
        this.#byIndex.set(entry.index, new Reader(entry.data).varuint())
    }
  }

  applied(index: Index): void {
    this.#byIndex.delete(index)
  }

  clear(): void {
    this.#byIndex.clear()
  }

  /** Returns the highest timestamp, at least `least`. */
  highest(least: number): number {
    let highest = least
    for (const stamp of this.#byIndex.values()) highest = Math.max(highest, stamp)
    return highest
  }
}
