import type { Ack, Command, LeaseholdError, Result } from '@leasehold/core'
import { errorOfRefusal, OpenRequest, type RequestHome, unknownOutcome } from './deduplicated-request.js'

export interface CallHome extends RequestHome {
  /** A refusal for want of room: it is sent again after a pause. */
  sendAgainLater(request: OpenRequest, result: Result): boolean
  /** Nobody waits for the request any more, and it will not be sent. */
  forgo(request: OpenRequest): void
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
export class NumberedCall extends OpenRequest {
  declare readonly home: CallHome
  #waiting = true

  constructor(
    home: CallHome,
    number: number,
    readonly terms: CallTerms,
    readonly resolve: (result: Result) => void,
    readonly reject: (error: LeaseholdError) => void,
  ) {
    super(home, number)
    this.dueAt = home.wire.now() + terms.timeoutMs
  }

  /** The time for an answer begins at `now`, if somebody still waits for it. */
  waitFrom(now: number): void {
    if (this.#waiting) this.dueAt = now + this.terms.timeoutMs
  }

  command(ack: Ack): Command {
    return this.terms.command(this.number, ack)
  }

  answer(result: Result): boolean {
    const { late } = this.terms
    if (late && this.home.sendAgainLater(this, result)) return false
    if (!this.#waiting) late?.(result)
    else if (result.kind !== 'refused') this.resolve(result)
    else {
      const error = errorOfRefusal(result)
      this.reject(this.leavesOpen(result) ? unknownOutcome(this.terms.what, error) : error)
    }
    return true
  }

  ended(error: LeaseholdError): void {
    this.reject(this.sent && !this.terms.late ? unknownOutcome(this.terms.what, error) : error)
  }

  overdue(): void {
    const { what, timeoutMs, late, unsent = 'drop' } = this.terms
    this.#waiting = false
    this.dueAt = Number.POSITIVE_INFINITY
    const error = this.home.wire.unavailable(`the ${what} was not answered within ${Math.round(timeoutMs)} ms`)
    if (!late || (!this.sent && unsent === 'drop')) this.home.forgo(this)
    this.reject(this.sent ? unknownOutcome(what, error) : error)
  }
}

/** Undoes an acquire, and waits for the answer for as long as the session lives. */
export class Cancel extends OpenRequest {
  declare readonly home: CallHome

  constructor(
    home: CallHome,
    number: number,
    readonly target: number,
    readonly done: () => void,
  ) {
    super(home, number)
  }

  command(ack: Ack): Command {
    const { session } = this.home.identity
    return { kind: 'cancel', session, request: this.number, ack, target: this.target }
  }

  answer(result: Result): boolean {
    if (this.home.sendAgainLater(this, result)) return false
    this.done()
    return true
  }

  ended(): void {}

  overdue(): void {}
}
