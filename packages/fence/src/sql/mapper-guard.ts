import { InvalidError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type GuardOptions, type OpenOptions } from '../common/guard.js'
import type { GuardableHold } from '../common/hold.js'
import { tracked } from '../common/tracked.js'
import * as mysqlErrors from './mysql/errors.js'
import { isInside } from './mysql/transaction.js'
import * as pgErrors from './postgres/errors.js'
import { unknownOutcome } from '../common/errors.js'
import { type Opening, openingOf } from '../common/resource.js'
import type { Dialect } from './dialect.js'
import { mysqlDialect } from './mysql/dialect.js'
import { PG_STILL_INSIDE, pgDialect, POISON } from './postgres/dialect.js'
import { assertCanRead, type EnterDriver, enterWith, withRetries } from './sql-guard.js'
import { endedInside, openLockedSteps, outside } from './open.js'
import { inlined, raw, type Statement, sql } from './statement.js'
import { type Row, runSteps } from './steps.js'

/** Options of the guards on top of a query builder or an ORM. */
export interface MapperGuardOptions extends GuardOptions {
  /** The mapper's database. Default `pg`. */
  readonly database?: 'pg' | 'mysql'
  /** How often `with` attempts a transaction in all after serialization failures and deadlocks. Default 10. */
  readonly attempts?: number
}

/** A guard in the transactions of a query builder or an ORM. The database's own guard prunes the marks. */
export interface MapperGuard<Tx, AnyTx> extends Guard<Tx> {
  /**
   * Opens inside a transaction of yours; call it as its first statement. If it rejects, let the error propagate, so that the
   * transaction is rolled back. `release()` does not wait for your transaction: release after it has ended.
   */
  enter<T extends AnyTx>(tx: T, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<T>>
  /** Raises the marks durably: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
}

/** What differs between mappers. */
export interface Mapper<Tx> {
  /** Runs one statement without values. `reads`: it returns rows. */
  run(tx: Tx, text: string, reads: boolean): Promise<unknown>
  isTransaction(tx: Tx): boolean
  /** Runs `body` in a new transaction: commits when it resolves, rolls back when it rejects. */
  begin<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  /** Returns the driver's error inside one of the mapper. Default: the error itself. */
  driverError?(error: unknown): unknown
}

/**
 * Fails if the transaction has failed or ended. Mappers commit after a failed statement whose error was caught; the commit is a
 * rollback then, and no mapper reports it.
 */
const STILL_INSIDE = { pg: sql`${raw(PG_STILL_INSIDE)}`, mysql: sql`DO 0` } as const

export function mapperGuard<Tx extends AnyTx, AnyTx>(
  mapper: Mapper<Tx>,
  options: MapperGuardOptions,
): MapperGuard<Tx, AnyTx> {
  const { database = 'pg' } = options
  if (database !== 'pg' && database !== 'mysql') {
    throw new InvalidError(`a guard on top of a mapper is for pg or mysql, not ${JSON.stringify(database)}`, {
      hint: 'for SQLite: enterSync of @leasehold/fence/sqlite, with the connection of the transaction',
    })
  }
  const dialect = database === 'pg' ? pgDialect(options.schema) : mysqlDialect(options.schema)
  const errors = database === 'pg' ? pgErrors : mysqlErrors
  const driverError = (error: unknown) => mapper.driverError?.(error) ?? error
  const driver: EnterDriver<Tx> = {
    dialect,
    run: (tx, statement) => runOf(mapper, dialect, tx, statement),
    explain: (error, opening) => errors.explain(driverError(error), opening),
    async poison(tx) {
      if (database !== 'pg') return
      try {
        await mapper.run(tx, POISON, false)
      } catch {
        // The statement is meant to fail.
      }
    },
  }

  const guarded = <T>(hold: GuardableHold, open: OpenOptions, body: (tx: Tx) => T | Promise<T>): Promise<T> =>
    tracked(hold, async () => {
      const opening = openingOf(hold, options, open)
      assertCanRead(dialect, opening)
      return await withRetries(
        options.attempts,
        (error) => errors.isRetryable(driverError(error)),
        async () => {
          hold.assertHeld()
          return await unit({ mapper, driver, errors, database }, opening, hold, body)
        },
      ).catch((error: unknown) => {
        throw driver.explain(error, opening)
      })
    })

  return {
    async with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<Tx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<Tx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return await guarded(hold, open, (tx) => body(tx as Fenced<Tx>))
    },
    async enter(tx, hold, open) {
      if (!mapper.isTransaction(tx as unknown as Tx)) throw outside()
      return await enterWith(driver as unknown as EnterDriver<typeof tx>, options, tx, hold, open)
    },
    open: (hold, open = {}) => guarded(hold, open, () => {}),
  }
}

interface Parts<Tx> {
  readonly mapper: Mapper<Tx>
  readonly driver: EnterDriver<Tx>
  readonly errors: typeof pgErrors | typeof mysqlErrors
  readonly database: 'pg' | 'mysql'
}

/** Runs one transaction of the mapper: opens, runs `body`, checks that the transaction is still open, commits. */
async function unit<Tx, T>(
  { mapper, driver, errors, database }: Parts<Tx>,
  opening: Opening,
  hold: GuardableHold,
  body: (tx: Tx) => T | Promise<T>,
): Promise<T> {
  const { dialect } = driver
  let committing = false
  try {
    return await mapper.begin(async (tx) => {
      committing = false
      const run = (statement: Statement) => driver.run(tx, statement)
      if (dialect.lockShared !== undefined) await run(sql`${raw(dialect.lockShared)}`)
      await runSteps(openLockedSteps(dialect, opening), run)
      const value = await body(tx)
      const [answer] = await run(STILL_INSIDE[database])
      if (answer?.inside === false) throw endedInside()
      hold.assertHeld()
      committing = true
      return value
    })
  } catch (error) {
    if (committing && errors.isUnavailable(mapper.driverError?.(error) ?? error)) throw unknownOutcome(error)
    throw error
  }
}

async function runOf<Tx>(mapper: Mapper<Tx>, dialect: Dialect, tx: Tx, statement: Statement): Promise<readonly Row[]> {
  const text = inlined(statement, dialect.literal)
  const reads = /^SELECT\b|\bRETURNING\b/.test(text)
  return rowsOf(dialect, await mapper.run(tx, text, reads))
}

/** Normalizes what drivers return: rows, an object with rows, a pair of rows and fields, or a count of affected rows. */
function rowsOf(dialect: Dialect, answer: unknown): readonly Row[] {
  const one = dialect.name === 'mysql' && Array.isArray(answer) && isAnswer(answer[0]) ? (answer[0] as unknown) : answer
  if (Array.isArray(one)) return one as Row[]
  if (typeof one === 'number') return [{ affected: one }]
  const { rows, affectedRows, numAffectedRows } = (one ?? {}) as {
    rows?: Row[]
    affectedRows?: number
    numAffectedRows?: bigint
  }
  if (dialect.name !== 'mysql') return rows ?? []
  if (affectedRows !== undefined) return [{ affected: affectedRows, inside: isInside(one) }]
  if (numAffectedRows !== undefined) return [{ affected: Number(numAffectedRows) }]
  return rows ?? []
}

/** Whether a value is the first of a pair: the rows of a query, or the header of a change. */
function isAnswer(value: unknown): boolean {
  return Array.isArray(value) || (typeof value === 'object' && value !== null && 'affectedRows' in value)
}
