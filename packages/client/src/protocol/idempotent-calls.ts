import { CompactingSet } from '@leasehold/core'
import type { SessionCall } from './session-call.js'

/** Instead of a number. */
export const NO_NUMBER = 0
/** On their way at the same time: more would only wait at the service. */
export const IN_FLIGHT_MAX = 500

export interface IdempotentCallHost {
  now(): number
  /** Sends it if there is a connection. */
  send(call: SessionCall): void
}

/**
 * The open calls of a session that do without a number, since a repeat of them has no second effect. There may be as many as the
 * session has holds; some of them are on their way, and the others follow in order as those are answered.
 */
export class IdempotentCalls {
  readonly #open = new CompactingSet<SessionCall>()
  /** Of the open ones: not sent on this connection. */
  readonly #unsent = new CompactingSet<SessionCall>()
  /** When the last one was answered. */
  #lastAnswerAt = Number.NEGATIVE_INFINITY

  constructor(private readonly host: IdempotentCallHost) {}

  get size(): number {
    return this.#open.size
  }

  has(call: SessionCall): boolean {
    return this.#open.has(call)
  }

  /** In the order in which they were made. */
  values(): SessionCall[] {
    return this.#open.size === 0 ? [] : [...this.#open]
  }

  add(call: SessionCall): void {
    this.#open.add(call)
    if (this.#open.size - this.#unsent.size <= IN_FLIGHT_MAX) this.host.send(call)
    else this.#unsent.add(call)
  }

  /** It has its answer, or its session is over. */
  close(call: SessionCall): void {
    if (!this.#open.delete(call) || this.#unsent.delete(call)) return
    const { host } = this
    this.#lastAnswerAt = host.now()
    for (const next of this.#unsent) {
      this.#unsent.delete(next)
      next.restartTimeout(this.#lastAnswerAt)
      return host.send(next)
    }
  }

  /** There is a connection on which nothing was sent yet. */
  resendAll(): void {
    this.#unsent.clear()
    let sent = 0
    for (const call of this.values()) {
      if (sent++ < IN_FLIGHT_MAX) this.host.send(call)
      else this.#unsent.add(call)
    }
  }

  /** Its time is over, but those before it are being answered all the while: it waits on. */
  postpone(call: SessionCall): boolean {
    if (!this.#unsent.has(call) || this.#lastAnswerAt + call.terms.timeoutMs <= this.host.now()) return false
    call.restartTimeout(this.#lastAnswerAt)
    return true
  }
}
