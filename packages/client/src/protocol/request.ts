import {
  type Ack,
  type Command,
  errorOf,
  type LeaseholdError,
  type Refused,
  type Result,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'

/**
 * One numbered request of a session. It is *open* from its number being taken until its final answer, and is sent again
 * with the same number on every new connection, so that a lost answer never makes a second effect.
 */
export interface OpenRequest {
  readonly number: number
  /** The command to send, which also tells the service what has arrived. */
  command(ack: Ack): Command
  /** Its answer. False: that was not the last word (it waits in a queue). */
  answer(result: Result): boolean
  /** The session is over. */
  ended(error: LeaseholdError): void
  /** Whether it was ever handed to a connection. */
  sent: boolean
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

/** Refusals after which the same message may be sent again elsewhere: nothing was done, or a repeat is recognised. */
export function worthRepeating(refused: Refused): boolean {
  return refused.code === 'no-quorum' || refused.code === 'unknown-outcome' || refused.code === 'unreachable'
}

/** A request was sent, and nobody will ever say what became of it. */
export function unknownOutcome(what: string, cause: LeaseholdError): LeaseholdError {
  return new UnknownOutcomeError(`the ${what} was sent, and its answer is lost: it may have taken effect`, { cause })
}

/** The error of an answer that does not fit its question: a refusal, or another kind than expected. */
export function unexpected(what: string, result: Result): LeaseholdError {
  if (result.kind === 'refused') return errorOfRefusal(result)
  return new UnavailableError(`the service has answered ${what} with ${result.kind}`, { hint: 'update the older side' })
}
