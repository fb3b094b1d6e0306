import {
  errorOf,
  HoldLostError,
  isErrorCode,
  LeaseholdError,
  type LostReason,
  UnavailableError,
  VersionConflictError,
} from '@leasehold/core'
import type { EngineStatus } from '../engine.js'
import type { EncodedError, EncodedStatus } from './thread-protocol.js'

export function encodeError(error: unknown): EncodedError {
  const known = error instanceof LeaseholdError
  const cause = error instanceof Error ? error.cause : undefined
  return {
    code: known ? error.code : undefined,
    message: error instanceof Error ? error.message : String(error),
    hint: known ? error.hint : undefined,
    reason: error instanceof HoldLostError ? error.reason : undefined,
    version: error instanceof VersionConflictError ? error.version : undefined,
    cause: cause instanceof Error ? cause.message : typeof cause === 'string' ? cause : undefined,
  }
}

export function decodeError(packed: EncodedError): LeaseholdError {
  const { code, message, hint, reason, version, cause } = packed
  if (!isErrorCode(code)) {
    return new UnavailableError(`the thread of the connection has failed: ${message}`, { hint })
  }
  const error = errorOf(code, message, { hint, version, reason: reason as LostReason | undefined })
  if (cause !== undefined) error.cause = new Error(cause)
  return error
}

export function encodeStatus(status: EngineStatus): EncodedStatus {
  if (status.state !== 'connecting') return status
  const { state, attempt, lastError } = status
  return { state, attempt, ...(lastError === undefined ? {} : { lastError: encodeError(lastError) }) }
}

export function decodeStatus(status: EncodedStatus): EngineStatus {
  const { state, attempt = 1, lastError, url = '', epoch = 0 } = status
  if (state === 'connected') return { state, url, epoch }
  if (state !== 'connecting') return { state }
  return { state, attempt, ...(lastError === undefined ? {} : { lastError: decodeError(lastError) }) }
}
