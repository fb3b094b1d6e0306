import {
  type Ack,
  type Command,
  type ErrorCode,
  errorOf,
  type LeaseholdError,
  LimitError,
  type Refused,
  type Result,
  type SessionId,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import type { Wire } from './wire.js'

/** Awaits the answer to a command on the present connection. It may never come: then the connection is gone. */
export interface Awaiting {
  answered(result: Result): void
}

/** What a request needs from its session. */
export interface RequestHost {
  readonly wire: Wire
  readonly identity: { readonly session: SessionId }
  answered(request: DeduplicatedRequest, result: Result): void
}

/**
 * One numbered request of a session. It is *open* from its number being taken until its final answer, and is sent again
 * with the same number on every new connection, so that a lost answer never makes a second effect.
 */
export abstract class DeduplicatedRequest implements Awaiting {
  /** How often it was handed to a connection. */
  sendings = 0
  /** What its last sending has acknowledged to the service. */
  lastAck: Ack | undefined
  /** When nobody waits for the answer any longer, in milliseconds of the monotonic clock. */
  dueAt = Number.POSITIVE_INFINITY

  constructor(
    readonly host: RequestHost,
    readonly number: number,
  ) {}

  /** Whether it was ever handed to a connection. */
  get sent(): boolean {
    return this.sendings > 0
  }

  /** A refusal that leaves open what became of an earlier sending. */
  isOutcomeOpen(result: Result): boolean {
    return result.kind === 'refused' && this.sendings > 1 && isBeforehand(result.code)
  }

  /** The command to send, which also tells the service what has arrived. */
  abstract command(ack: Ack): Command
  /** Its answer. False: that was not the last word (it waits in a queue). */
  abstract answer(result: Result): boolean
  /** The session is over. */
  abstract ended(error: LeaseholdError): void
  /** `dueAt` has come, and is not any more. */
  abstract overdue(): void

  answered(result: Result): void {
    this.host.answered(this, result)
  }
}

/** One attempt to renew a session, until its answer or its end. */
export interface Renewal {
  readonly sentAt: number
  readonly resolve: () => void
  readonly reject: (error: LeaseholdError) => void
  readonly cancel: () => void
}

export function errorOfRefusal(refused: Refused): LeaseholdError {
  const { code, message, hint, version } = refused
  return errorOf(code, message, { hint, version })
}

const ROOM_AND_RIGHTS: readonly ErrorCode[] = ['storage', 'limit', 'forbidden', 'unauthenticated']

/**
 * Refusals that a member may give before it looks at what it knows of a request, for want of room or rights: one of a repeat does
 * not say what became of the first sending.
 */
export function isBeforehand(code: ErrorCode): boolean {
  return ROOM_AND_RIGHTS.includes(code)
}

/** Refusals after which the same message may be sent again elsewhere: nothing was done, or a repeat is recognised. */
export function isRetryableRefusal(refused: Refused): boolean {
  return refused.code === 'no-quorum' || refused.code === 'unknown-outcome' || refused.code === 'unreachable'
}

/** A session has no numbers left for requests that may as well be made in another one. */
export function windowFullError(): LimitError {
  return new LimitError('too many requests of this session are open', {
    hint: 'an acquire that waits for long keeps back the request numbers after it: let it wait in a client of its own',
  })
}

/** A request was sent, and nobody will ever say what became of it. */
export function unknownOutcomeError(what: string, cause: LeaseholdError): LeaseholdError {
  return new UnknownOutcomeError(`the ${what} was sent, and its answer is lost: it may have taken effect`, { cause })
}

/** The error of an answer that does not fit its question: a refusal, or another kind than expected. */
export function unexpected(what: string, result: Result): LeaseholdError {
  if (result.kind === 'refused') return errorOfRefusal(result)
  return new UnavailableError(`the service has answered ${what} with ${result.kind}`, { hint: 'update the older side' })
}
