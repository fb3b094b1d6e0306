import { AccessError, InvalidError, LeaseholdError } from '@leasehold/core'
import { onlyReads, type Opening, staleToken } from '../../common/resource.js'
import { ENDED_INSIDE } from './dialect.js'
import { unavailable } from '../../common/errors.js'
import { codesOf, NETWORK, notSetUp, UNREACHED } from '../errors.js'
import { endedInside } from '../open.js'

/** SQLSTATEs after which a retry of the transaction may succeed: serialization failure, deadlock. */
const RETRYABLE = new Set(['40001', '40P01'])
/** Too many connections, a server that starts or stops, a lock timeout. */
const UNAVAILABLE = new Set(['53300', '57P01', '57P02', '57P03', '55P03'])
const BROKEN = new Set([
  ...NETWORK,
  // postgres.js
  ...['CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
])
/** Messages of pg and pg-pool for a lost connection; these errors have no code. */
const LOST_CONNECTION = /connection (terminated|ended|error)|not queryable|client was closed|timeout exceeded when/i

/** The connection was never made: no statement has been sent. */
const NEVER_CONNECTED = new Set([...UNREACHED, '53300', '57P03', 'CONNECT_TIMEOUT'])

/** Whether a statement was sent and its answer is lost: outside a transaction its outcome is unknown. */
export function isAnswerLost(error: unknown): boolean {
  return isUnavailable(error) && !NEVER_CONNECTED.has(codeOf(error) ?? '') && codeOf(error) !== '55P03'
}

/** SQLSTATEs that the trigger form raises. */
export const UNFENCED_STATE = 'LH001'
export const STALE_STATE = 'LH002'
export const OTHER_RESOURCE_STATE = 'LH003'

/** The SQLSTATE or system code of an error. */
function codeOf(error: unknown): string | undefined {
  return codesOf(error).code
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(codeOf(error) ?? '')
}

/** Whether the connection is lost or was never established: the server rolls an open transaction back. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof LeaseholdError) return false
  const code = codeOf(error)
  if (code !== undefined) return UNAVAILABLE.has(code) || BROKEN.has(code) || code.startsWith('08')
  return error instanceof Error && LOST_CONNECTION.test(error.message)
}

/** Maps errors of the guard's statements and triggers to typed errors. Others pass unchanged. */
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
        hint: 'open the lock of the written row',
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
      return new AccessError(`PostgreSQL rejects the user or the password: ${message}`, { cause: error })
    default:
      return isUnavailable(error) ? unavailable('the database is not available', error) : error
  }
}

/** The commit was a rollback, because an earlier statement had failed. */
export function rolledBack(cause?: unknown): InvalidError {
  return new InvalidError(
    'nothing was written: a statement of the transaction had failed, so its commit was a rollback',
    {
      cause,
      hint: 'let errors of statements propagate to the guard, or use a savepoint around statements that may fail',
    },
  )
}

/** Reads the compared tokens from the detail of the trigger's error. */
function staleOf(error: unknown, message: string): unknown {
  const { detail } = error as { detail?: unknown }
  const found = /^\s*\{/.test(String(detail)) ? (JSON.parse(String(detail)) as Record<string, string>) : {}
  const { resource, token, mark } = found
  if (resource === undefined || token === undefined) return new InvalidError(message, { cause: error })
  return staleToken(resource, BigInt(token), mark === undefined ? undefined : BigInt(mark))
}
