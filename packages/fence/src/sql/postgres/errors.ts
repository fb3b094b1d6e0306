import { AccessError, InvalidError, LeaseholdError } from '@leasehold/core'
import { onlyReads, type Opening, staleToken } from '../../common/resource.js'
import { ENDED_INSIDE } from './dialect.js'
import { found, NETWORK, notSetUp, unavailable, UNREACHED } from '../errors.js'
import { endedInside } from '../open.js'

/** SQLSTATEs after which the same transaction, begun anew, may succeed: serialization failure, deadlock. */
const RETRYABLE = new Set(['40001', '40P01'])
/** Too many connections, a server that starts or stops, a lock that was waited for too long. */
const UNAVAILABLE = new Set(['53300', '57P01', '57P02', '57P03', '55P03'])
const BROKEN = new Set([
  ...NETWORK,
  // postgres.js
  ...['CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
])
/** What pg and pg-pool say, without any code, when the connection is not there (any more). */
const LOST_CONNECTION = /connection (terminated|ended|error)|not queryable|client was closed|timeout exceeded when/i

/** The connection was never made: no statement has been sent. */
const NEVER_CONNECTED = new Set([...UNREACHED, '53300', '57P03', 'CONNECT_TIMEOUT'])

/** A statement was sent and its answer lost: outside a transaction nobody knows whether it took effect. */
export function isAnswerLost(error: unknown): boolean {
  return isUnavailable(error) && !NEVER_CONNECTED.has(codeOf(error) ?? '') && codeOf(error) !== '55P03'
}

/** SQLSTATEs that the trigger form raises. */
export const UNFENCED_STATE = 'LH001'
export const STALE_STATE = 'LH002'
export const OTHER_RESOURCE_STATE = 'LH003'

/** The SQLSTATE or system code of an error. */
function codeOf(error: unknown): string | undefined {
  return found(error).code
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(codeOf(error) ?? '')
}

/** The connection to the database is gone or was never there: an open transaction is rolled back by the server. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof LeaseholdError) return false
  const code = codeOf(error)
  if (code !== undefined) return UNAVAILABLE.has(code) || BROKEN.has(code) || code.startsWith('08')
  return error instanceof Error && LOST_CONNECTION.test(error.message)
}

/** Gives the errors of the guard's own statements, and those of its triggers, their types; others pass as they are. */
export function explain(error: unknown, opening?: Opening): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  switch (codeOf(error)) {
    case STALE_STATE:
      return staleOf(error, message)
    case UNFENCED_STATE:
      return new InvalidError(message, {
        cause: error,
        hint: 'write through guard.with(hold, …), or after guard.enter(tx, hold) in the same transaction',
      })
    case OTHER_RESOURCE_STATE:
      return new InvalidError(message, {
        code: 'mismatch',
        cause: error,
        hint: 'open the lock of the row that is written',
      })
    case '22P02':
      return message.includes(ENDED_INSIDE) ? endedInside(error) : error
    case '25P02':
      return rolledBack(error)
    case '25006':
      if (opening?.readOnly !== true) return error
      return onlyReads(error)
    case '42P01':
    case '42703':
    case '3F000':
      if (!/leasehold_|schema/.test(message)) return error
      return notSetUp('pg', message, error)
    case '28P01':
    case '28000':
      return new AccessError(`PostgreSQL refuses the user or the password: ${message}`, { cause: error })
    default:
      return isUnavailable(error) ? unavailable('the database is not available', error) : error
  }
}

export function rolledBack(cause?: unknown): InvalidError {
  return new InvalidError(
    'nothing was written: a statement of the transaction had failed, so its commit was a rollback',
    { cause, hint: 'let errors of statements reach the guard, or use a savepoint around what may fail' },
  )
}

/** The trigger tells in its detail what it has compared. */
function staleOf(error: unknown, message: string): unknown {
  const { detail } = error as { detail?: unknown }
  const found = /^\s*\{/.test(String(detail)) ? (JSON.parse(String(detail)) as Record<string, string>) : {}
  const { resource, token, mark } = found
  if (resource === undefined || token === undefined) return new InvalidError(message, { cause: error })
  return staleToken(resource, BigInt(token), mark === undefined ? undefined : BigInt(mark))
}
