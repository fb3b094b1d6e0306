import { InvalidError, UnavailableError } from '@leasehold/core'
import type { OpenOptions } from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { beginOf, type PgGuardOptions, POISON } from './pg.js'
import { explain, isAnswerLost, isRetryable, isUnavailable } from './sql/postgres/errors.js'
import { unavailable } from './sql/errors.js'
import { unknownOutcome } from './sql/postgres/transaction.js'
import type { RowChange } from './sql/column.js'
import { pgDialect } from './sql/postgres/dialect.js'
import { fencedUpdateWith, PRUNE_LOCK_TIMEOUT_MS, type SqlDriver, type SqlGuard, sqlGuard } from './sql/sql-guard.js'
import { checkRaised, endedInside, openLockedSteps, raiseAtOnce, setReadOnly } from './sql/open.js'
import { bound, inlined, type Statement } from './sql/statement.js'
import { type Row, runSteps } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { PgGuardOptions } from './pg.js'
export type { RowChange } from './sql/column.js'

/** What a guard uses of a `sql` of postgres.js, in and outside of a transaction. */
export interface PostgresJsQueries {
  unsafe(text: string, values?: never[]): PromiseLike<unknown>
}

/** What a guard uses of the `sql` of postgres.js. */
export interface PostgresJs extends PostgresJsQueries {
  // oxlint-disable-next-line typescript/no-explicit-any -- the driver's own type of a transaction is taken from here
  begin(options: string, body: (tx: any) => Promise<unknown>): Promise<unknown>
}

/** A guard of resources in PostgreSQL over postgres.js. */
export type PostgresJsGuard<Tx> = SqlGuard<Tx, PostgresJsQueries>

type Callable = PostgresJsQueries & ((...args: unknown[]) => unknown)

/**
 * A guard over `postgres`, with the same tables and the same rules as `@leasehold/fence/pg`: both may guard one resource.
 * The body gets the `sql` of the transaction, and must use no other.
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
 * One transaction. `check` runs right before COMMIT. postgres.js commits nothing after a statement that has failed, also if
 * the body has caught its error.
 */
async function transaction<T>(
  sql: PostgresJs,
  isolation: string,
  check: () => void,
  body: (tx: Callable) => Promise<T>,
): Promise<T> {
  const at: { stage: 'connecting' | 'open' | 'committing' | 'over' } = { stage: 'connecting' }
  const isOver = () => at.stage === 'over'
  try {
    const value = await sql.begin(isolation, async (tx: Callable) => {
      at.stage = 'open'
      const result = await settled(isOver, async () => await body(guardedTx(tx, isOver)))
      check()
      at.stage = 'committing'
      // In a box: postgres.js awaits the items of an array.
      return { result }
    })
    return (value as { result: T }).result
  } catch (error) {
    if (!isUnavailable(error)) throw error
    if (at.stage === 'committing') throw unknownOutcome(error)
    throw unavailable(
      at.stage === 'open' ? 'the connection to the database was lost' : 'the database cannot be reached',
      error,
    )
  } finally {
    at.stage = 'over'
  }
}

/**
 * What the body answers; nothing for ever once the transaction is over, since postgres.js would then send a ROLLBACK over a
 * connection that is gone, and end the process by an error that nobody can catch.
 */
async function settled<T>(isOver: () => boolean, body: () => Promise<T>): Promise<T> {
  try {
    return await body()
  } catch (error) {
    // The loss of the connection is told to the statement and to the transaction in the same turn.
    if (isUnavailable(error) || error instanceof UnavailableError) await new Promise((resolve) => setTimeout(resolve))
    throw error
  } finally {
    if (isOver()) await new Promise(() => {})
  }
}

/** Ends the transaction; a rollback to a savepoint does not. postgres.js itself refuses to begin another one. */
const ENDS = /^(?:\s|\/\*[^]*?\*\/|--[^\n]*\n)*(?:commit|end|abort|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b))\b/i

function assertGoesOn(text: unknown): void {
  if (typeof text === 'string' && ENDS.test(text)) throw endedInside()
}

/**
 * The transaction's `sql` until the transaction is over. When the connection is lost, postgres.js connects anew under the same
 * `sql`, and a body that goes on would write outside of every transaction.
 */
function guardedTx(tx: Callable, isOver: () => boolean): Callable {
  const assertOpen = () => {
    if (isOver()) {
      throw new UnavailableError(
        'the transaction is over: its connection was lost, or its body went on after its end',
        {
          hint: 'nothing was written; the same call may succeed later',
        },
      )
    }
  }
  return new Proxy(tx, {
    apply(target, self, args) {
      assertOpen()
      assertGoesOn((args[0] as { raw?: readonly string[] } | undefined)?.raw?.[0])
      return Reflect.apply(target, self, args) as unknown
    },
    get(target, property) {
      assertOpen()
      if (property === 'unsafe') {
        return (...args: Parameters<Callable['unsafe']>) => {
          assertGoesOn(args[0])
          return target.unsafe(...args)
        }
      }
      return Reflect.get(target, property, target) as unknown
    },
  })
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
    // That is what it is for.
  }
}
