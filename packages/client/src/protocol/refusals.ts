import {
  type ErrorCode,
  errorOf,
  type LeaseholdError,
  LimitError,
  type Refused,
  type Result,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'

/** The typed error of a refusal. */
export function errorOfRefusal(refused: Refused): LeaseholdError {
  const { code, message, hint, version } = refused
  return errorOf(code, message, { hint, version })
}

const ROOM_AND_RIGHTS: readonly ErrorCode[] = ['storage', 'limit', 'forbidden', 'unauthenticated']

/**
 * Whether a member may refuse with this code, for want of room or rights, before it looks the request up. Such a refusal of a
 * repeat does not tell what became of the first sending.
 */
export function isBeforehand(code: ErrorCode): boolean {
  return ROOM_AND_RIGHTS.includes(code)
}

/** Whether the same message may be sent to another member: it had no effect, or a repeat is deduplicated. */
export function isRetryableRefusal(refused: Refused): boolean {
  return refused.code === 'no-quorum' || refused.code === 'unknown-outcome' || refused.code === 'unreachable'
}

/** The error of a request for which the session has no request numbers left. Another session may have some. */
export function windowFullError(): LimitError {
  return new LimitError('too many requests of this session are open', {
    hint: 'a long wait blocks the request numbers after it: use a client of its own for it',
  })
}

/** The error of a request that was sent and whose answer will never arrive. */
export function unknownOutcomeError(what: string, cause: LeaseholdError): LeaseholdError {
  return new UnknownOutcomeError(`the ${what} was sent, and its answer was lost: it may have taken effect`, { cause })
}

/** The error of an answer that does not fit its request: a refusal, or a kind that was not expected. */
export function unexpectedResult(what: string, result: Result): LeaseholdError {
  if (result.kind === 'refused') return errorOfRefusal(result)
  return new UnavailableError(`the service answered ${what} with ${result.kind}`, {
    hint: 'update the client or the service, whichever is older',
  })
}
