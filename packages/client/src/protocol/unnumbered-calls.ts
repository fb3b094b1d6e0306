import { CompactingSet } from '@leasehold/core'
import type { NumberedCall } from './numbered-call.js'

/** Instead of a number. */
export const UNNUMBERED = 0
/** On their way at the same time: more would only wait at the service. */
export const IN_FLIGHT_MAX = 500

export interface UnnumberedHome {
  now(): number
  /** Sends it if there is a connection. */
  send(call: NumberedCall): void
}

/**
 * The open calls of a session that do without a number, since a repeat of them has no second effect. There may be as many as the
 * session has holds; some of them are on their way, and the others follow in order as those are answered.
 */
export class UnnumberedCalls {
  readonly #open = new CompactingSet<NumberedCall>()
  /** Of the open ones: not sent on this connection. */
  readonly #later = new CompactingSet<NumberedCall>()
  /** When the last one was answered. */
  #movedAt = Number.NEGATIVE_INFINITY

  constructor(private readonly home: UnnumberedHome) {}

  get size(): number {
    return this.#open.size
  }

  has(call: NumberedCall): boolean {
    return this.#open.has(call)
  }

  /** In the order in which they were made. */
  values(): NumberedCall[] {
    return this.#open.size === 0 ? [] : [...this.#open]
  }

  add(call: NumberedCall): void {
    this.#open.add(call)
    if (this.#open.size - this.#later.size <= IN_FLIGHT_MAX) this.home.send(call)
    else this.#later.add(call)
  }

  /** It has its answer, or its session is over. */
  close(call: NumberedCall): void {
    if (!this.#open.delete(call) || this.#later.delete(call)) return
    const { home } = this
    this.#movedAt = home.now()
    for (const next of this.#later) {
      this.#later.delete(next)
      next.waitFrom(this.#movedAt)
      return home.send(next)
    }
  }

  /** There is a connection on which nothing was sent yet. */
  sendAgain(): void {
    this.#later.clear()
    let sent = 0
    for (const call of this.values()) {
      if (sent++ < IN_FLIGHT_MAX) this.home.send(call)
      else this.#later.add(call)
    }
  }

  /** Its time is over, but those before it are being answered all the while: it waits on. */
  postpones(call: NumberedCall): boolean {
    if (!this.#later.has(call) || this.#movedAt + call.terms.timeoutMs <= this.home.now()) return false
    call.waitFrom(this.#movedAt)
    return true
  }
}
