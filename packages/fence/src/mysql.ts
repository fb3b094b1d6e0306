import { InvalidError } from '@leasehold/core'
import type { OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { explain, isAnswerLost, isRetryable } from './sql/mysql/errors.js'
import { unknownOutcome } from './common/errors.js'
import type { MysqlConnection, MysqlPool, MysqlQueries } from './sql/mysql/client.js'
import { isInside, transaction } from './sql/mysql/transaction.js'
import type { RowChange } from './sql/column.js'
import { mysqlDialect } from './sql/mysql/dialect.js'
import {
  fencedUpdateWith,
  PRUNE_LOCK_TIMEOUT_MS,
  type SqlDriver,
  type SqlGuard,
  type SqlGuardOptions,
  sqlGuard,
} from './sql/sql-guard.js'
import { openLockedSteps, recheckSteps } from './sql/open.js'
import { bound, inlined, type Statement } from './sql/statement.js'
import { type Row, runSteps, type Steps } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { MysqlConnection, MysqlPool, MysqlQueries } from './sql/mysql/client.js'
export type { RowChange } from './sql/column.js'

/** The connection type of a pool: `PoolConnection` for mysql2's `Pool`. */
export type ConnectionOf<P extends MysqlPool> = Awaited<ReturnType<P['getConnection']>>

export interface MysqlGuardOptions extends SqlGuardOptions {
  /** Default: the server's, REPEATABLE READ unless it was changed. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
}

/** A guard of resources in MySQL or MariaDB (InnoDB): one mark per resource in the table `leasehold_guard`. */
export type MysqlGuard<Connection> = SqlGuard<Connection, MysqlQueries>

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable']

/**
 * A guard over a pool of `mysql2/promise`, for MySQL 8 and MariaDB 10.6 or later. It needs the tables that
 * `leasehold guard sql mysql` prints. It keeps no session state.
 *
 * `with` retries the whole transaction after a deadlock, so its body may run several times. A shared hold opens in a
 * transaction of its own, and then reads in a READ ONLY transaction.
 *
 * @example
 * const guard = fence(mysql.createPool('mysql://localhost/shop'))
 * await guard.with(hold, (tx) => tx.query('UPDATE invoice SET total = total + 7 WHERE id = ?', [42]))
 */
export function fence<P extends MysqlPool>(pool: P, options: MysqlGuardOptions = {}): MysqlGuard<ConnectionOf<P>> {
  if (typeof pool?.getConnection !== 'function') {
    throw new InvalidError('a guard for MySQL takes a pool of mysql2/promise')
  }
  const driver = mysqlDriver(pool, isolationOf(options.isolation), options.schema)
  return sqlGuard<MysqlConnection, MysqlQueries>(driver, options) as unknown as MysqlGuard<ConnectionOf<P>>
}

function mysqlDriver(
  pool: MysqlPool,
  isolation: readonly string[],
  schema: string | undefined,
): SqlDriver<MysqlConnection> {
  const dialect = mysqlDialect(schema)
  const stepsOf = <T>(tx: MysqlConnection, steps: Steps<T>) => runSteps(steps, (statement) => run(tx, statement))
  return {
    dialect,
    run,
    explain,
    isRetryable,
    async poison() {
      // MySQL cannot make a transaction fail: the caller must not swallow the rejection.
    },
    async unit(opening, check, body) {
      const open = async <T>(then: (tx: MysqlConnection) => T | Promise<T>) =>
        await transaction(pool, [...isolation, 'START TRANSACTION'], check, async (tx) => {
          await stepsOf(tx, openLockedSteps(dialect, opening))
          return await then(tx)
        })
      if (!opening.readOnly) return await open(body)
      await open(() => {})
      return await transaction(pool, [...isolation, 'START TRANSACTION READ ONLY'], check, async (tx) => {
        await stepsOf(tx, recheckSteps(dialect, opening))
        return await body(tx)
      })
    },
    async maintain(alone, steps) {
      return await transaction(
        pool,
        ['START TRANSACTION'],
        () => {},
        (tx) => (alone ? withLockTimeout(tx, () => stepsOf(tx, steps())) : stepsOf(tx, steps())),
      )
    },
  }
}

/** Runs `body` with the lock timeout of `prune`, and restores the session's timeout afterwards. */
async function withLockTimeout<T>(tx: MysqlQueries, body: () => Promise<T>): Promise<T> {
  const [rows] = await tx.query('SELECT @@innodb_lock_wait_timeout AS seconds')
  const { seconds } = (rows as [{ seconds: number }])[0]
  await tx.query(`SET innodb_lock_wait_timeout = ${Math.ceil(PRUNE_LOCK_TIMEOUT_MS / 1_000)}`)
  try {
    return await body()
  } finally {
    await tx.query(`SET innodb_lock_wait_timeout = ${Number(seconds)}`)
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement. Works inside a transaction or directly on a
 * pool. Without `set` it opens the row: raises its mark and returns it; do this before you compute from the row. With `set` it
 * returns undefined. Deleting a row deletes its mark.
 * @throws StaleTokenError, MissingRowError, HoldLostError, InvalidError
 */
export function fencedUpdate(
  tx: MysqlQueries,
  hold: GuardableHold,
  change: RowChange & { readonly set?: undefined },
  options?: OpenOptions,
): Promise<Record<string, unknown>>
export function fencedUpdate(
  tx: MysqlQueries,
  hold: GuardableHold,
  change: RowChange,
  options?: OpenOptions,
): Promise<Record<string, unknown> | undefined>
export async function fencedUpdate(
  tx: MysqlQueries,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions = {},
): Promise<Record<string, unknown> | undefined> {
  for (const name of [change.table, ...Object.keys(change.where), ...Object.keys(change.set ?? {})]) {
    // mysql2 would replace it by a value.
    if (String(name).includes('?')) throw new InvalidError(`a name with "?": ${JSON.stringify(name)}`)
  }
  return await fencedUpdateWith({ dialect: mysqlDialect(), run: runBound, explain, lost }, tx, hold, change, options)
}

function lost(error: unknown): Error | undefined {
  return isAnswerLost(error) ? unknownOutcome(error) : undefined
}

function isolationOf(isolation: MysqlGuardOptions['isolation']): readonly string[] {
  if (isolation === undefined) return []
  if (!ISOLATIONS.includes(isolation)) throw new InvalidError(`isolation is one of ${ISOLATIONS.join(', ')}`)
  // Applies to the next transaction only, not to the session.
  return [`SET TRANSACTION ISOLATION LEVEL ${isolation.toUpperCase()}`]
}

/** Runs a statement with inlined values, because the driver's own escaping depends on the session's sql_mode. */
async function run(tx: MysqlQueries, statement: Statement): Promise<readonly Row[]> {
  return rowsOf(await tx.query(inlined(statement, mysqlDialect().literal)))
}

/** Runs a statement with values of the caller, which the driver binds. */
async function runBound(tx: MysqlQueries, statement: Statement): Promise<readonly Row[]> {
  const text = bound(statement, () => '?')
  return rowsOf(await tx.query(text, statement.values as unknown[]))
}

function rowsOf([answer]: [unknown, ...unknown[]]): readonly Row[] {
  if (Array.isArray(answer)) return answer as Row[]
  const { affectedRows } = answer as { affectedRows: number }
  return [{ affected: affectedRows, inside: isInside(answer) }]
}
