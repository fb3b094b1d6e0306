import { AccessError, LeaseholdError } from '@leasehold/core'
import { onlyReads, type Opening } from '../../common/resource.js'
import { unavailable } from '../../common/errors.js'
import { codesOf, NETWORK, notSetUp, UNREACHED } from '../errors.js'

/** Errors after which a retry of the transaction may succeed: deadlock, record changed since it was read. */
const RETRYABLE = new Set(['ER_LOCK_DEADLOCK', 'ER_CHECKREAD', '40001', '1213', '1020'])
const RETRYABLE_NUMBERS = new Set([1213, 1020])
/** Errors by which the server has rolled the whole transaction back: later statements would not be part of it. */
const ROLLED_BACK_NUMBERS = new Set([1213, 1020])
const UNAVAILABLE = new Set([
  ...['PROTOCOL_CONNECTION_LOST', 'PROTOCOL_SEQUENCE_TIMEOUT', 'ER_SERVER_SHUTDOWN', 'ER_NORMAL_SHUTDOWN'],
  ...['ER_CON_COUNT_ERROR', 'ER_CONNECTION_KILLED', 'ER_CLIENT_INTERACTION_TIMEOUT', 'POOL_CLOSED'],
  ...NETWORK,
])
const NEVER_CONNECTED = new Set([...UNREACHED, 'ER_CON_COUNT_ERROR'])
/** Messages of mysql2 for a lost connection; these errors have no code. */
const LOST_CONNECTION = /closed state|connection (lost|is closed)|pool is closed|server closed the connection/i

export function isRetryable(error: unknown): boolean {
  const { code, errno } = codesOf(error)
  return RETRYABLE.has(code ?? '') || RETRYABLE_NUMBERS.has(errno ?? 0)
}

export function isRolledBack(error: unknown): boolean {
  return ROLLED_BACK_NUMBERS.has(codesOf(error).errno ?? 0)
}

/** Whether the connection is lost or was never established: the server rolls an open transaction back. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof LeaseholdError) return false
  const { code } = codesOf(error)
  if (UNAVAILABLE.has(code ?? '')) return true
  return error instanceof Error && LOST_CONNECTION.test(error.message)
}

/** Whether a statement was sent and its answer is lost: outside a transaction its outcome is unknown. */
export function isAnswerLost(error: unknown): boolean {
  return isUnavailable(error) && !NEVER_CONNECTED.has(codesOf(error).code ?? '')
}

/** Maps errors of the guard's statements to typed errors. Others pass unchanged. */
export function explain(error: unknown, opening?: Opening): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  switch (codesOf(error).code) {
    case 'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION':
      if (opening?.readOnly !== true) return error
      return onlyReads(error)
    case 'ER_NO_SUCH_TABLE':
    case 'ER_BAD_FIELD_ERROR':
    case 'ER_BAD_DB_ERROR':
      if (!/leasehold_|database/.test(message)) return error
      return notSetUp('mysql', message, error)
    case 'ER_ACCESS_DENIED_ERROR':
      return new AccessError(`the database rejects the user or the password: ${message}`, { cause: error })
    case 'ER_LOCK_WAIT_TIMEOUT':
      return unavailable('another transaction held its locks for too long', error)
    default:
      return isUnavailable(error) ? unavailable('the database is not available', error) : error
  }
}
