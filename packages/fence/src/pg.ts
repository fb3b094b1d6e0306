import { InvalidError } from '@leasehold/core'
import type { OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { explain, isAnswerLost, isRetryable } from './sql/postgres/errors.js'
import { unknownOutcome } from './common/errors.js'
import type { PgClient, PgPool, PgQueries } from './sql/postgres/client.js'
import { transaction } from './sql/postgres/transaction.js'
import type { RowChange } from './sql/column.js'
import { PG_STILL_INSIDE, pgDialect, POISON } from './sql/postgres/dialect.js'
import {
  fencedUpdateWith,
  PRUNE_LOCK_TIMEOUT_MS,
  type SqlDriver,
  type SqlGuard,
  type SqlGuardOptions,
  sqlGuard,
} from './sql/sql-guard.js'
import { checkRaised, openLockedSteps, raiseAtOnce, setReadOnly } from './sql/open.js'
import { bound, inlined, type Statement } from './sql/statement.js'
import { type Row, runSteps } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { PgClient, PgPool, PgQueries, PgResult } from './sql/postgres/client.js'
export type { RowChange } from './sql/column.js'

/** The client type of a pool: `PoolClient` for pg's `Pool`. */
export type ClientOf<P> = P extends { connect: { (): Promise<infer C>; (...more: infer _A): infer _R } }
  ? C
  : P extends { connect: () => Promise<infer C> }
    ? C
    : PgClient

export interface PgGuardOptions extends SqlGuardOptions {
  /** Default: the server's, READ COMMITTED unless it was changed. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
}

/** A guard of resources in PostgreSQL: one mark per resource in the table `leasehold_guard`. */
export type PgGuard<Client> = SqlGuard<Client, PgQueries>

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable']

/**
 * A guard over a pool of `pg`. It needs the tables that `leasehold guard sql pg` prints. It keeps no session state, so it works
 * behind transaction poolers.
 *
 * `with` retries the whole transaction after a serialization failure or a deadlock, so its body may run several times and
 * should have no effects outside the database. With a shared hold the transaction can only read.
 *
 * @example
 * const guard = fence(new Pool())
 * await guard.with(hold, async (tx) => {
 *   const { rows } = await tx.query('SELECT total FROM invoice WHERE id = $1', [42])
 *   await tx.query('UPDATE invoice SET total = $2 WHERE id = $1', [42, rows[0].total + 7])
 * })
 */
export function fence<P extends PgPool>(pool: P, options: PgGuardOptions = {}): PgGuard<ClientOf<P>> {
  if (typeof pool?.connect !== 'function') throw new InvalidError('a guard for PostgreSQL takes a Pool of pg')
  const driver = pgDriver(pool, beginOf(options.isolation), options.schema)
  return sqlGuard<PgClient, PgQueries>(driver, options) as unknown as PgGuard<ClientOf<P>>
}

function pgDriver(pool: PgPool, begin: string, schema: string | undefined): SqlDriver<PgClient> {
  const dialect = pgDialect(schema)
  return {
    dialect,
    run,
    explain,
    isRetryable,
    poison,
    unit: (opening, check, body) => {
      const once = raiseAtOnce(dialect, opening)
      // One message for BEGIN and opening: the guard adds no round trip to the transaction.
      const head = `${begin}; ${dialect.lockShared}`
      const first = once === undefined ? head : `${head}; ${inlined(once, dialect.literal)}`
      return transaction(
        pool,
        first,
        check,
        async (tx, answers) => {
          const step = (statement: Statement) => run(tx, statement)
          if (once === undefined) await runSteps(openLockedSteps(dialect, opening), step)
          else {
            await runSteps(checkRaised(dialect, opening, lastRows(answers)), step)
            await runSteps(setReadOnly(dialect, opening), step)
          }
          return await body(tx)
        },
        PG_STILL_INSIDE,
      )
    },
    maintain: (alone, steps) => {
      const lockOut = `; SET LOCAL lock_timeout = ${PRUNE_LOCK_TIMEOUT_MS}; ${dialect.lockExclusive}`
      const free = () => {}
      return transaction(pool, alone ? `BEGIN${lockOut}` : 'BEGIN', free, (tx) =>
        runSteps(steps(), (statement) => run(tx, statement)),
      )
    },
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement. Works inside a transaction or directly on a
 * pool. Without `set` it opens the row: raises its mark and returns it; do this before you compute from the row. Deleting a
 * row deletes its mark: keep the row, or use the guard table.
 * @throws StaleTokenError, MissingRowError, HoldLostError, InvalidError
 * @example
 * const invoice = await fencedUpdate(pool, hold, { table: 'invoice', where: { id: 42 } })
 * await fencedUpdate(pool, hold, { table: 'invoice', where: { id: 42 }, set: { total: invoice.total + 7 } })
 */
export async function fencedUpdate(
  tx: PgQueries,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions = {},
): Promise<Record<string, unknown>> {
  const driver = { dialect: pgDialect(), run, explain, lost }
  return (await fencedUpdateWith(driver, tx, hold, change, options)) as Record<string, unknown>
}

function lost(error: unknown): Error | undefined {
  return isAnswerLost(error) ? unknownOutcome(error) : undefined
}

/** @throws InvalidError */
export function beginOf(isolation: PgGuardOptions['isolation']): string {
  if (isolation === undefined) return 'BEGIN'
  if (!ISOLATIONS.includes(isolation)) throw new InvalidError(`isolation is one of ${ISOLATIONS.join(', ')}`)
  return `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`
}

async function run(tx: PgQueries, statement: Statement): Promise<readonly Row[]> {
  const text = bound(statement, (n) => `$${n}`)
  return (await tx.query(text, statement.values as unknown[])).rows as Row[]
}

/** Returns the rows of the last of several statements that were sent as one message. */
function lastRows(answers: unknown): readonly Row[] {
  const last = Array.isArray(answers) ? (answers.at(-1) as { rows: Row[] } | undefined) : (answers as { rows: Row[] })
  return last?.rows ?? []
}

async function poison(tx: PgQueries): Promise<void> {
  try {
    await tx.query(POISON)
  } catch {
    // The statement is meant to fail.
  }
}
