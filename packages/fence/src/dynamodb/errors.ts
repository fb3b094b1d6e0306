import { AccessError, InvalidError } from '@leasehold/core'
import { messageOf } from '../common/errors.js'
import type { Attributes, SdkError } from './client.js'

/** DynamoDB rejected the whole request for a transient reason: the attempt wrote nothing. */
const TRANSIENT = new Set([
  'TransactionConflictException',
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
])

/** The outcome of an attempt, as far as its error reveals it. */
export type Failure =
  | { readonly kind: 'condition'; readonly item: Attributes | undefined }
  | { readonly kind: 'transient' }
  | { readonly kind: 'definite'; readonly error: unknown }
  | { readonly kind: 'unknown' }

export function failureOf(error: unknown): Failure {
  const { name, Item, CancellationReasons } = (error ?? {}) as SdkError
  if (name === 'ConditionalCheckFailedException') return { kind: 'condition', item: Item }
  if (name === 'TransactionCanceledException') {
    const [first] = CancellationReasons ?? []
    if (first?.Code === 'ConditionalCheckFailed') return { kind: 'condition', item: first.Item }
    const codes = new Set((CancellationReasons ?? []).map((reason) => reason.Code))
    if (codes.has('ConditionalCheckFailed') || codes.has('ValidationError')) return { kind: 'definite', error }
    return { kind: 'transient' }
  }
  if (name !== undefined && TRANSIENT.has(name)) return { kind: 'transient' }
  const definite = explain(error, name)
  return definite === undefined ? { kind: 'unknown' } : { kind: 'definite', error: definite }
}

/** Whether the SDK retried by itself, so that an earlier attempt may have taken effect. */
export function wasRetried(error: unknown): boolean {
  return ((error as SdkError | null)?.$metadata?.attempts ?? 1) > 1
}

function explain(error: unknown, name: string | undefined): unknown {
  const what = `DynamoDB rejects the request: ${name}: ${messageOf(error)}`
  switch (name) {
    case 'ValidationException':
    case 'ItemCollectionSizeLimitExceededException':
    case 'IdempotentParameterMismatchException':
      return new InvalidError(what, { cause: error })
    case 'ResourceNotFoundException':
      return new InvalidError(what, { cause: error, hint: 'is this the name of the table, and of its region?' })
    case 'AccessDeniedException':
      return new AccessError(what, { code: 'forbidden', cause: error })
    case 'UnrecognizedClientException':
    case 'InvalidSignatureException':
    case 'ExpiredTokenException':
    case 'MissingAuthenticationTokenException':
      return new AccessError(what, { cause: error })
    default:
      return undefined
  }
}
