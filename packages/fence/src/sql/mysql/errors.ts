import { AccessError, LeaseholdError } from '@leasehold/core'
import { onlyReads, type Opening } from '../../common/resource.js'
import { found, NETWORK, notSetUp, unavailable, UNREACHED } from '../errors.js'

/** Errors after which the same transaction, begun anew, may succeed: deadlock, changed since it was read. */
const RETRYABLE = new Set(['ER_LOCK_DEADLOCK', 'ER_CHECKREAD', '40001', '1213', '1020'])
const RETRYABLE_NUMBERS = new Set([1213, 1020])
/** The server has rolled the whole transaction back: what is sent now would not be part of it. */
const ROLLED_BACK_NUMBERS = new Set([1213, 1020])
const UNAVAILABLE = new Set([
  ...['PROTOCOL_CONNECTION_LOST', 'PROTOCOL_SEQUENCE_TIMEOUT', 'ER_SERVER_SHUTDOWN', 'ER_NORMAL_SHUTDOWN'],
  ...['ER_CON_COUNT_ERROR', 'ER_CONNECTION_KILLED', 'ER_CLIENT_INTERACTION_TIMEOUT', 'POOL_CLOSED'],
  ...NETWORK,
])
const NEVER_CONNECTED = new Set([...UNREACHED, 'ER_CON_COUNT_ERROR'])
/** What mysql2 says, without any code, when the connection is not there (any more). */
const LOST_CONNECTION = /closed state|connection (lost|is closed)|pool is closed|server closed the connection/i

export function isRetryable(error: unknown): boolean {
  const { code, errno } = found(error)
  return RETRYABLE.has(code ?? '') || RETRYABLE_NUMBERS.has(errno ?? 0)
}

export function isRolledBack(error: unknown): boolean {
  return ROLLED_BACK_NUMBERS.has(found(error).errno ?? 0)
}

/** The connection to the database is gone or was never there: an open transaction is rolled back by the server. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof LeaseholdError) return false
  const { code } = found(error)
  if (UNAVAILABLE.has(code ?? '')) return true
  return error instanceof Error && LOST_CONNECTION.test(error.message)
}

/** A statement was sent and its answer lost: outside a transaction nobody knows whether it took effect. */
export function isAnswerLost(error: unknown): boolean {
  return isUnavailable(error) && !NEVER_CONNECTED.has(found(error).code ?? '')
}

/** Gives the errors of the guard's own statements their types; others pass as they are. */
export function explain(error: unknown, opening?: Opening): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  switch (found(error).code) {
    case 'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION':
      if (opening?.readOnly !== true) return error
      return onlyReads(error)
    case 'ER_NO_SUCH_TABLE':
    case 'ER_BAD_FIELD_ERROR':
    case 'ER_BAD_DB_ERROR':
      if (!/leasehold_|database/.test(message)) return error
      return notSetUp('mysql', message, error)
    case 'ER_ACCESS_DENIED_ERROR':
      return new AccessError(`the database refuses the user or the password: ${message}`, { cause: error })
    case 'ER_LOCK_WAIT_TIMEOUT':
      return unavailable('another transaction has held its locks for too long', error)
    default:
      return isUnavailable(error) ? unavailable('the database is not available', error) : error
  }
}
