import { type Ack, type Command, errorOf, type LeaseholdError, type Refused, type Result } from '@leasehold/core'

/**
 * One numbered request of a session. It is *open* from its number being taken until its final answer, and is sent again
 * with the same number on every new connection, so that a lost answer never makes a second effect.
 */
export interface OpenRequest {
  readonly number: number
  /** An acquire or a put: such requests keep to half of the window. */
  command(ack: Ack): Command
  /** Its answer. False: that was not the last word (it waits in a queue). */
  answer(result: Result): boolean
  /** The session is over. */
  ended(error: LeaseholdError): void
  /** Whether it was ever handed to a connection. */
  sent: boolean
}

export function errorOfRefusal(refused: Refused): LeaseholdError {
  const { code, message, hint, version } = refused
  return errorOf(code, message, { hint, version })
}

/** Refusals after which the same message may be sent again elsewhere: nothing was done, or a repeat is recognised. */
export function worthRepeating(refused: Refused): boolean {
  return refused.code === 'no-quorum' || refused.code === 'unknown-outcome' || refused.code === 'unreachable'
}
