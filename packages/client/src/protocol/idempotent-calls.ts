import { CompactingSet } from '@leasehold/core'
import type { SessionCall } from './session-call.js'

/** The request number of calls that need none. */
export const NO_NUMBER = 0
/** Calls in flight at the same time: more would only queue at the service. */
export const IN_FLIGHT_MAX = 500

export interface IdempotentCallHost {
  /** Milliseconds of the monotonic clock. */
  now(): number
  /** Sends the call if the session is attached. */
  send(call: SessionCall): void
}

/**
 * The open calls of a session that need no number, because a repeat has no second effect: releases while a waiter blocks the
 * window. There may be as many as the session has holds; {@link IN_FLIGHT_MAX} are in flight, the others follow in order.
 */
export class IdempotentCalls {
  readonly #host: IdempotentCallHost
  readonly #open = new CompactingSet<SessionCall>()
  /** Of the open ones: not sent on this connection. */
  readonly #unsent = new CompactingSet<SessionCall>()
  #lastAnswerAt = Number.NEGATIVE_INFINITY

  constructor(host: IdempotentCallHost) {
    this.#host = host
  }

  get size(): number {
    return this.#open.size
  }

  has(call: SessionCall): boolean {
    return this.#open.has(call)
  }

  /** In the order of their creation. */
  values(): SessionCall[] {
    return this.#open.size === 0 ? [] : [...this.#open]
  }

  add(call: SessionCall): void {
    this.#open.add(call)
    if (this.#open.size - this.#unsent.size <= IN_FLIGHT_MAX) this.#host.send(call)
    else this.#unsent.add(call)
  }

  /** The call was answered or abandoned: the next one is sent. */
  close(call: SessionCall): void {
    if (!this.#open.delete(call) || this.#unsent.delete(call)) return
    const host = this.#host
    this.#lastAnswerAt = host.now()
    for (const next of this.#unsent) {
      this.#unsent.delete(next)
      next.restartTimeout(this.#lastAnswerAt)
      return host.send(next)
    }
  }

  /** Starts over on a new connection. */
  resendAll(): void {
    this.#unsent.clear()
    let sent = 0
    for (const call of this.values()) {
      if (sent++ < IN_FLIGHT_MAX) this.#host.send(call)
      else this.#unsent.add(call)
    }
  }

  /** Extends the deadline of an unsent call while those before it are being answered. False: it is overdue. */
  postpone(call: SessionCall): boolean {
    if (!this.#unsent.has(call) || this.#lastAnswerAt + call.terms.timeoutMs <= this.#host.now()) return false
    call.restartTimeout(this.#lastAnswerAt)
    return true
  }
}
