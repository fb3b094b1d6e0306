import { InvalidError } from '@leasehold/core'
import type { Fenced, Guard } from '../common/guard.js'
import { FencingRequiredError, type Problem, problemOf } from './errors.js'
import { type HeadersLike, holdOfRequest } from './header.js'

/** Which lock fences a route. */
export interface FencedRoute<Request> {
  /**
   * Returns the lock that protects what this request writes. Only the caller's token for this lock counts: otherwise a token
   * of any lock would be accepted.
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

/** The rejection of a response that was sent before the commit, which may report a write that never happened. */
export function sentTooEarly(): InvalidError {
  return new InvalidError('the handler sent its response before the commit, so the transaction was rolled back', {
    hint: 'return the response from the handler: it is sent after the commit',
  })
}

/** Returns the response for an error of a guard; rethrows other errors. */
export function responseOf(error: unknown): Problem {
  const problem = problemOf(error)
  if (problem === undefined) throw error
  return problem
}
