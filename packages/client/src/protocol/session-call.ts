import type { Ack, Command, LeaseholdError, Result } from '@leasehold/core'
import { DeduplicatedRequest, type RequestHost } from './deduplicated-request.js'
import { errorOfRefusal, unknownOutcomeError } from './refusals.js'

/** What a call needs from its session. */
export interface CallHost extends RequestHost {
  /** Sends the request again after a pause if `result` is a refusal for want of room. False: it is not. */
  retryLater(request: DeduplicatedRequest, result: Result): boolean
  /** The caller no longer waits, and the request will not be sent again. */
  abandonRequest(request: DeduplicatedRequest): void
}

export interface CallTerms {
  /** For messages. */
  readonly what: string
  readonly timeoutMs: number
  readonly command: (number: number, ack: Ack) => Command
  /**
   * Handles an answer after the caller has given up. Without it, a request that was sent and not answered in time is never
   * sent again.
   */
  readonly late?: (result: Result) => void
  /** Whether a request that could not be sent in time is dropped, or kept for the next connection. Default `'drop'`. */
  readonly unsent?: 'drop' | 'keep'
}

/** Any request of a session except an acquire: one answer, within a time. Idempotent ones have no number. */
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

  /** Restarts the time for an answer at `now`, while the caller waits. */
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

/** Undoes an acquire. It is sent until it is answered or the session ends. */
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
