import type { Change } from '@leasehold/core'

/**
 * The changes of a session that this client has processed: each once, whichever way it arrives first: pushed, or
 * in the answer of a renewal. `seen` acknowledges what need not be repeated: never a number below which a change may
 * still be missing.
 *
 * Pushes are lost with their connection. So after (re)attaching, the numbers that are pushed do not count until the answer
 * of a renewal *sent on this connection* has closed the gap before them.
 */
export class ChangeLog {
  #seen = 0
  readonly #ahead = new Set<number>()
  #synced = true

  get seen(): number {
    return this.#seen
  }

  /** Attached to a new connection: pushes may have been lost. */
  reattached(): void {
    this.#synced = false
  }

  /** Whether a pushed change is new. */
  pushed(change: Change): boolean {
    if (!this.#isNew(change.number)) return false
    if (this.#synced) this.#seen = change.number
    else this.#ahead.add(change.number)
    return true
  }

  /**
   * The changes in a renewal's answer that are new. They are all that the service still keeps, so numbers between them are
   * settled. Answers come by the connection on which their renewal was sent, after it was attached.
   */
  renewed(changes: readonly Change[]): Change[] {
    const fresh = changes.filter((change) => this.#isNew(change.number))
    for (const number of [...changes.map((change) => change.number), ...this.#ahead]) {
      if (number > this.#seen) this.#seen = number
    }
    this.#ahead.clear()
    this.#synced = true
    return fresh
  }

  #isNew(number: number): boolean {
    return number > this.#seen && !this.#ahead.has(number)
  }
}
