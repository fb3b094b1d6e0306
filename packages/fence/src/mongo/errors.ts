import { AccessError, InvalidError } from '@leasehold/core'
import { messageOf } from '../cas/errors.js'
import type { DriverError } from './client.js'

const DUPLICATE_KEY = 11_000
const WRITE_CONFLICT = 112
/** Unauthorized, AuthenticationFailed. */
const FORBIDDEN = 13
const NOT_AUTHENTICATED = 18

/** What an attempt has come to, as far as its error tells. */
export type Failure =
  /** The filter found nothing, and the insertion of an upsert found the document. */
  | { readonly kind: 'exists' }
  /** Nothing of this attempt was written. */
  | { readonly kind: 'passing' }
  | { readonly kind: 'definite'; readonly error: unknown }
  | { readonly kind: 'unknown' }

export function failureOf(error: unknown): Failure {
  const { name, code, keyPattern } = (error ?? {}) as DriverError
  if (code === DUPLICATE_KEY) {
    if (keyPattern === undefined || '_id' in keyPattern) return { kind: 'exists' }
    const why = `a unique index refuses the document: ${messageOf(error)}`
    const hint = 'opening creates a document without fields when there is none: make the index partial or sparse'
    return { kind: 'definite', error: new InvalidError(why, { cause: error, hint }) }
  }
  if (code === WRITE_CONFLICT || name === 'MongoServerSelectionError') return { kind: 'passing' }
  if (code === FORBIDDEN || code === NOT_AUTHENTICATED) {
    const kind = code === FORBIDDEN ? 'forbidden' : 'unauthenticated'
    const refused = new AccessError(`MongoDB refuses: ${messageOf(error)}`, { code: kind, cause: error })
    return { kind: 'definite', error: refused }
  }
  if (name === 'MongoServerError' && !hasLabel(error, 'RetryableWriteError')) return { kind: 'definite', error }
  if (name === 'MongoInvalidArgumentError' || name === 'MongoAPIError' || name === 'BSONError') {
    return { kind: 'definite', error: new InvalidError(messageOf(error), { cause: error }) }
  }
  return { kind: 'unknown' }
}

/** The whole transaction has to be begun anew, by whoever has begun it. */
export function isTransient(error: unknown): boolean {
  return hasLabel(error, 'TransientTransactionError')
}

function hasLabel(error: unknown, label: string): boolean {
  return (error as DriverError | null)?.hasErrorLabel?.(label) === true
}
