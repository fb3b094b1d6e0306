import type { Ack, Command, LeaseholdError, Result, SessionId } from '@leasehold/core'
import { isBeforehand } from './refusals.js'
import type { Awaiting, Wire } from './wire.js'

/** What a request needs from its session. */
export interface RequestHost {
  readonly wire: Wire
  readonly identity: { readonly session: SessionId }
  answered(request: DeduplicatedRequest, result: Result): void
}

/**
 * A request of a session, with a number by which the service deduplicates it. The request is *open* from taking its number
 * until its final answer, and is sent again with the same number on every new connection, so that a lost answer never causes
 * a second effect.
 */
export abstract class DeduplicatedRequest implements Awaiting {
  /** How often it was handed to a connection. */
  sendings = 0
  /** What its last sending acknowledged to the service. */
  lastAck: Ack | undefined
  /** When the caller stops waiting for the answer, in milliseconds of the monotonic clock. */
  dueAt = Number.POSITIVE_INFINITY

  constructor(
    readonly host: RequestHost,
    readonly number: number,
  ) {}

  /** Whether it was ever handed to a connection. */
  get sent(): boolean {
    return this.sendings > 0
  }

  /** Whether `result` is a refusal that does not tell what became of an earlier sending. */
  isOutcomeOpen(result: Result): boolean {
    return result.kind === 'refused' && this.sendings > 1 && isBeforehand(result.code)
  }

  /** The command to send, which also acknowledges the answers that have arrived. */
  abstract command(ack: Ack): Command
  /** Handles an answer. False: it is not the final one (the acquire waits in a queue). */
  abstract answer(result: Result): boolean
  /** The session has ended. */
  abstract ended(error: LeaseholdError): void
  /** `dueAt` has passed. Moves it, so that it lies in the future or at infinity. */
  abstract overdue(): void

  answered(result: Result): void {
    this.host.answered(this, result)
  }
}
