import { AccessError, InvalidError } from '@leasehold/core'
import { messageOf } from '../common/errors.js'
import type { DriverError } from './client.js'

const DUPLICATE_KEY = 11_000
const WRITE_CONFLICT = 112
/** Unauthorized. */
const FORBIDDEN = 13
/** AuthenticationFailed. */
const NOT_AUTHENTICATED = 18

/** The outcome of an attempt, as far as its error reveals it. */
export type Failure =
  /** An upsert matched no document, and its insertion found that the document exists. */
  | { readonly kind: 'exists' }
  /** The attempt wrote nothing. */
  | { readonly kind: 'transient' }
  | { readonly kind: 'definite'; readonly error: unknown }
  | { readonly kind: 'unknown' }

export function failureOf(error: unknown): Failure {
  const { name, code, keyPattern } = (error ?? {}) as DriverError
  if (code === DUPLICATE_KEY) {
    if (keyPattern === undefined || '_id' in keyPattern) return { kind: 'exists' }
    const why = `a unique index rejects the document: ${messageOf(error)}`
    const hint = 'opening creates a document without fields if there is none: make the index partial or sparse'
    return { kind: 'definite', error: new InvalidError(why, { cause: error, hint }) }
  }
  if (code === WRITE_CONFLICT || name === 'MongoServerSelectionError') return { kind: 'transient' }
  if (code === FORBIDDEN || code === NOT_AUTHENTICATED) {
    const kind = code === FORBIDDEN ? 'forbidden' : 'unauthenticated'
    const rejected = new AccessError(`MongoDB rejects the request: ${messageOf(error)}`, { code: kind, cause: error })
    return { kind: 'definite', error: rejected }
  }
  if (name === 'MongoServerError' && !hasLabel(error, 'RetryableWriteError')) return { kind: 'definite', error }
  if (name === 'MongoInvalidArgumentError' || name === 'MongoAPIError' || name === 'BSONError') {
    return { kind: 'definite', error: new InvalidError(messageOf(error), { cause: error }) }
  }
  return { kind: 'unknown' }
}

/** Whether the caller must retry the whole transaction. */
export function isTransient(error: unknown): boolean {
  return hasLabel(error, 'TransientTransactionError')
}

function hasLabel(error: unknown, label: string): boolean {
  return (error as DriverError | null)?.hasErrorLabel?.(label) === true
}
