import type { Ack, Command, LeaseholdError, Result } from '@leasehold/core'
import { errorOfRefusal, DeduplicatedRequest, type RequestHost, unknownOutcomeError } from './deduplicated-request.js'

export interface CallHost extends RequestHost {
  /** A refusal for want of room: it is sent again after a pause. */
  retryLater(request: DeduplicatedRequest, result: Result): boolean
  /** Nobody waits for the request any more, and it will not be sent. */
  abandonRequest(request: DeduplicatedRequest): void
}

export interface CallTerms {
  /** For messages. */
  readonly what: string
  readonly timeoutMs: number
  readonly command: (number: number, ack: Ack) => Command
  /**
   * What to do with an answer after the caller has given up. Without it a request that was sent and not answered in time is
   * never sent again.
   */
  readonly late?: (result: Result) => void
  /** Whether one that could not be sent in time is sent all the same, when there is a connection again. */
  readonly unsent?: 'drop' | 'keep'
}

/** Any request of a session but an acquire, mostly with a number: one answer, within a time. */
export class SessionCall extends DeduplicatedRequest {
  declare readonly host: CallHost
  #waiting = true

  constructor(
    host: CallHost,
    number: number,
    readonly terms: CallTerms,
    readonly resolve: (result: Result) => void,
    readonly reject: (error: LeaseholdError) => void,
  ) {
    super(host, number)
    this.dueAt = host.wire.now() + terms.timeoutMs
  }

  /** The time for an answer begins at `now`, if somebody still waits for it. */
  restartTimeout(now: number): void {
    if (this.#waiting) this.dueAt = now + this.terms.timeoutMs
  }

  command(ack: Ack): Command {
    return this.terms.command(this.number, ack)
  }

  answer(result: Result): boolean {
    const { late } = this.terms
    if (late && this.host.retryLater(this, result)) return false
    if (!this.#waiting) late?.(result)
    else if (result.kind !== 'refused') this.resolve(result)
    else {
      const error = errorOfRefusal(result)
      this.reject(this.isOutcomeOpen(result) ? unknownOutcomeError(this.terms.what, error) : error)
    }
    return true
  }

  ended(error: LeaseholdError): void {
    this.reject(this.sent && !this.terms.late ? unknownOutcomeError(this.terms.what, error) : error)
  }

  overdue(): void {
    const { what, timeoutMs, late, unsent = 'drop' } = this.terms
    this.#waiting = false
    this.dueAt = Number.POSITIVE_INFINITY
    const error = this.host.wire.unavailable(`the ${what} was not answered within ${Math.round(timeoutMs)} ms`)
    if (!late || (!this.sent && unsent === 'drop')) this.host.abandonRequest(this)
    this.reject(this.sent ? unknownOutcomeError(what, error) : error)
  }
}

/** Undoes an acquire, and waits for the answer for as long as the session lives. */
export class CancelRequest extends DeduplicatedRequest {
  declare readonly host: CallHost

  constructor(
    host: CallHost,
    number: number,
    readonly target: number,
    readonly done: () => void,
  ) {
    super(host, number)
  }

  command(ack: Ack): Command {
    const { session } = this.host.identity
    return { kind: 'cancel', session, request: this.number, ack, target: this.target }
  }

  answer(result: Result): boolean {
    if (this.host.retryLater(this, result)) return false
    this.done()
    return true
  }

  ended(): void {}

  overdue(): void {}
}
