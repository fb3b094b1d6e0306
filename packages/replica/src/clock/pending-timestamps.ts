import { CompactingMap, Reader } from '@leasehold/core'
import type { Entry, Index } from '@leasehold/raft'

/** The stamps of entries that are in the log and not yet applied: a new leader's clock starts at the highest. */
export class PendingTimestamps {
  readonly #byIndex = new CompactingMap<Index, number>()
  #last: Index = 0

  /** The log got these, in place of its suffix from the first of them on. */
  note(entries: readonly Entry[]): void {
    const first = entries[0]
    if (!first) return
    for (let index = first.index; index <= this.#last; index++) this.#byIndex.delete(index)
    this.#last = first.index + entries.length - 1
    for (const entry of entries) {
      // The stamp is the first field of an encoded entry.
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

  /** The highest, or `least` if that is higher. */
  highest(least: number): number {
    let highest = least
    for (const stamp of this.#byIndex.values()) highest = Math.max(highest, stamp)
    return highest
  }
}
