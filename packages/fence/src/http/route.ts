import { InvalidError } from '@leasehold/core'
import type { Fenced, Guard } from '../common/guard.js'
import { FencingRequiredError, type HeadersLike, holdOfRequest, type Problem, problemOf } from '../http.js'

/** Which lock fences a route. */
export interface FencedRoute<Request> {
  /**
   * The lock that protects what this request touches. The caller's token for this lock is checked, whatever other tokens it
   * sends: otherwise a token of any lock would open the door.
   */
  readonly lock: (request: Request) => string
}

/** @throws InvalidError */
export function checkRoute<Request>(guard: Guard<unknown>, route: FencedRoute<Request>, handler: unknown): void {
  if (typeof guard?.with !== 'function') throw new InvalidError('a fenced route takes a guard: fence(pool)')
  if (typeof route?.lock !== 'function') throw new InvalidError('a fenced route needs { lock: (request) => name }')
  if (typeof handler !== 'function') throw new InvalidError('a fenced route takes a handler: async (tx, request) => …')
}

/** Runs a handler in a transaction of the guard, under the token that the request carries for `lock`. */
export async function runFenced<Tx, T>(
  guard: Guard<Tx>,
  headers: HeadersLike,
  lock: string,
  handler: (tx: Fenced<Tx>) => T | Promise<T>,
): Promise<T> {
  const hold = holdOfRequest(headers)
  if (!hold.names.includes(lock)) throw new FencingRequiredError(lock)
  return await guard.with(hold, { lock }, handler)
}

/** An answer that was sent before the commit may tell of something that was never written. */
export function sentTooEarly(): InvalidError {
  return new InvalidError('the handler has answered before the transaction was committed, so it was rolled back', {
    hint: 'return the answer from the handler: it is sent after the commit',
  })
}

/** What to answer to an error; rethrows what is not of the guard. */
export function answerOf(error: unknown): Problem {
  const problem = problemOf(error)
  if (problem === undefined) throw error
  return problem
}
