import { InvalidError } from '@leasehold/core'
import type { OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { beginOf, type PgGuardOptions } from './pg.js'
import { explain, isAnswerLost, isRetryable } from './sql/postgres/errors.js'
import { unknownOutcome } from './common/errors.js'
import type { Callable, PostgresJs, PostgresJsQueries } from './sql/postgres-js/client.js'
import { transaction } from './sql/postgres-js/transaction.js'
import type { RowChange } from './sql/column.js'
import { pgDialect, POISON } from './sql/postgres/dialect.js'
import { fencedUpdateWith, PRUNE_LOCK_TIMEOUT_MS, type SqlDriver, type SqlGuard, sqlGuard } from './sql/sql-guard.js'
import { checkRaised, openLockedSteps, raiseAtOnce, setReadOnly } from './sql/open.js'
import { bound, inlined, type Statement } from './sql/statement.js'
import { type Row, runSteps } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { PgGuardOptions } from './pg.js'
export type { PostgresJs, PostgresJsQueries } from './sql/postgres-js/client.js'
export type { RowChange } from './sql/column.js'

/** A guard of resources in PostgreSQL over postgres.js. */
export type PostgresJsGuard<Tx> = SqlGuard<Tx, PostgresJsQueries>

/**
 * A guard over `postgres` with the tables and rules of `@leasehold/fence/pg`; both may guard the same resource.
 * The body gets the `sql` of the transaction and must use no other.
 *
 * @example
 * const guard = fence(postgres('postgres://localhost/shop'))
 * await guard.with(hold, async (sql) => {
 *   const [invoice] = await sql`SELECT total FROM invoice WHERE id = ${42}`
 *   await sql`UPDATE invoice SET total = ${Number(invoice.total) + 7} WHERE id = ${42}`
 * })
 */
export function fence<S extends PostgresJs>(
  sql: S,
  options: PgGuardOptions = {},
): PostgresJsGuard<Parameters<Parameters<S['begin']>[1]>[0]> {
  if (typeof sql?.begin !== 'function' || typeof sql.unsafe !== 'function') {
    throw new InvalidError('a guard for postgres.js takes its sql')
  }
  const driver = postgresJsDriver(sql, beginOf(options.isolation), options.schema)
  return sqlGuard<Callable, PostgresJsQueries>(driver, options) as never
}

function postgresJsDriver(sql: PostgresJs, begin: string, schema: string | undefined): SqlDriver<Callable> {
  const dialect = pgDialect(schema)
  const isolation = begin.replace(/^BEGIN ?/, '')
  return {
    dialect,
    run,
    explain,
    isRetryable,
    poison,
    unit: (opening, check, body) => {
      const once = raiseAtOnce(dialect, opening)
      check()
      return transaction(sql, isolation, check, async (tx) => {
        const step = (statement: Statement) => run(tx, statement)
        const first = `${dialect.lockShared}${once === undefined ? '' : `; ${inlined(once, dialect.literal)}`}`
        const answers = await tx.unsafe(first)
        if (once === undefined) await runSteps(openLockedSteps(dialect, opening), step)
        else {
          await runSteps(checkRaised(dialect, opening, (answers as Row[][]).at(-1) ?? []), step)
          await runSteps(setReadOnly(dialect, opening), step)
        }
        return await body(tx)
      })
    },
    maintain: (alone, steps) =>
      transaction(
        sql,
        '',
        () => {},
        async (tx) => {
          if (alone) await tx.unsafe(`SET LOCAL lock_timeout = ${PRUNE_LOCK_TIMEOUT_MS}; ${dialect.lockExclusive}`)
          return await runSteps(steps(), (statement) => run(tx, statement))
        },
      ),
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement; see `fencedUpdate` of `@leasehold/fence/pg`.
 * @throws StaleTokenError, MissingRowError, HoldLostError, InvalidError
 */
export async function fencedUpdate(
  sql: PostgresJsQueries,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions = {},
): Promise<Record<string, unknown>> {
  const driver = { dialect: pgDialect(), run, explain, lost }
  return (await fencedUpdateWith(driver, sql, hold, change, options)) as Record<string, unknown>
}

function lost(error: unknown): Error | undefined {
  return isAnswerLost(error) ? unknownOutcome(error) : undefined
}

async function run(tx: PostgresJsQueries, statement: Statement): Promise<readonly Row[]> {
  const text = bound(statement, (n) => `$${n}`)
  return (await tx.unsafe(text, statement.values as never[])) as Row[]
}

async function poison(tx: PostgresJsQueries): Promise<void> {
  try {
    await tx.unsafe(POISON)
  } catch {
    // The statement is meant to fail.
  }
}
