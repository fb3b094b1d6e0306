import { InvalidError } from '@leasehold/core'
import { MissingRowError } from '../common/errors.js'
import { mismatch, staleToken, type Target } from '../common/resource.js'
import type { Dialect } from './dialect.js'
import { identifier, tableName } from './names.js'
import { joined, raw, type Statement, sql } from './statement.js'
import { bigintOf, type Row, type Steps } from './steps.js'

/** The columns that the form `column` adds to a table. */
export const TOKEN_COLUMN = 'leasehold_token'
export const LOCK_COLUMN = 'leasehold_lock'
/** Changes with every accepted update, for databases whose updates return only the number of changed rows. */
export const WRITES_COLUMN = 'leasehold_writes'

/** One row that carries its own mark. */
export interface RowChange {
  /** `table` or `schema.table`. */
  readonly table: string
  /** The row's key: column → value. */
  readonly where: Readonly<Record<string, unknown>>
  /** Column → new value. Without `set`, the row is only opened: its mark is raised and the row is returned. */
  readonly set?: Readonly<Record<string, unknown>>
}

/**
 * Changes one row under its own mark, in one statement, which is accepted if the row's mark is not above the token.
 * Returns the new row without the guard's columns; undefined after a change if the database's updates return no rows.
 * @throws StaleTokenError, MissingRowError, InvalidError (`mismatch`)
 */
export function* columnSteps(
  dialect: Dialect,
  target: Target,
  change: RowChange,
): Steps<Record<string, unknown> | undefined> {
  if (!target.writes || target.kind === 'slot') {
    throw new InvalidError('a mark on the row is for exclusive holds only', {
      code: 'mismatch',
      hint: 'shared holds and permits need the guard table: guard.with(hold, …)',
    })
  }
  const rows = yield update(dialect, target, change)
  if (!dialect.readsBack) return yield* onlyRow(dialect, target, change, rows)
  const affected = Number(rows[0]?.affected)
  if (affected > 1) throw tooMany(affected)
  if (affected === 0) return yield* reject(dialect, target, change)
  return change.set === undefined ? yield* readBack(dialect, target, change) : undefined
}

function update(dialect: Dialect, target: Target, change: RowChange): Statement {
  const name = (column: string) => raw(identifier(column, dialect.quote))
  const token = integer(dialect, target.token)
  const lock = text(dialect, target.lock)
  const count = dialect.readsBack ? sql`, ${raw(`${WRITES_COLUMN} = ${WRITES_COLUMN} + 1`)}` : sql``
  const set = Object.entries(change.set ?? {}).map(
    ([column, value]) => sql`, ${name(assignable(column))} = ${valueOf(value)}`,
  )
  const returning = dialect.readsBack ? sql`` : sql` RETURNING *`
  return sql`UPDATE ${raw(tableName(change.table, undefined, dialect.quote))} SET ${raw(TOKEN_COLUMN)} = ${token}, ${raw(LOCK_COLUMN)} = ${lock}${count}${joined([sql``, ...set], '')} WHERE ${conditionOf(dialect, change)} AND ${raw(TOKEN_COLUMN)} <= ${token} AND coalesce(${raw(LOCK_COLUMN)}, ${lock}) = ${lock}${returning}`
}

function* onlyRow(
  dialect: Dialect,
  target: Target,
  change: RowChange,
  rows: readonly Row[],
): Steps<Record<string, unknown>> {
  if (rows.length > 1) throw tooMany(rows.length)
  if (rows[0] !== undefined) return withoutGuard(rows[0])
  return yield* reject(dialect, target, change)
}

function tooMany(found: number): InvalidError {
  return new InvalidError(`a fenced update changes one row, but found ${found}`, {
    hint: 'address the row by its key, and roll this transaction back',
  })
}

/** Reads the row after an opening, where updates return no rows. It is valid only if the mark is still ours. */
function* readBack(dialect: Dialect, target: Target, change: RowChange): Steps<Record<string, unknown>> {
  const table = raw(tableName(change.table, undefined, dialect.quote))
  const mark = raw(`${dialect.asText(TOKEN_COLUMN)} AS leasehold_mark`)
  const [row] = yield sql`SELECT t.*, ${mark} FROM ${table} AS t WHERE ${conditionOf(dialect, change)} FOR UPDATE`
  if (row === undefined || bigintOf(row.leasehold_mark) !== target.token) return yield* reject(dialect, target, change)
  const { leasehold_mark: _mark, ...rest } = row
  return withoutGuard(rest)
}

/** Determines, for the error message only, why no row was changed. */
function* reject(dialect: Dialect, target: Target, change: RowChange): Steps<never> {
  const table = raw(tableName(change.table, undefined, dialect.quote))
  const lock = text(dialect, target.lock)
  const [row] =
    yield sql`SELECT ${raw(dialect.asText(TOKEN_COLUMN))} AS token, coalesce(${raw(LOCK_COLUMN)}, ${lock}) AS lock_name FROM ${table} WHERE ${conditionOf(dialect, change)}`
  const where = Object.entries(change.where)
    .map(([column, value]) => `${column} = ${String(value)}`)
    .join(', ')
  if (row === undefined) throw new MissingRowError(change.table, where)
  const resource = `${change.table}(${where})`
  const problem = mismatch({ ...target, resource }, { kind: 'lock', lock: String(row.lock_name) }, 'lock')
  if (problem !== undefined) throw problem
  throw staleToken(resource, target.token, bigintOf(row.token))
}

function conditionOf(dialect: Dialect, change: RowChange): Statement {
  const where = Object.entries(change.where ?? {})
  if (where.length === 0) throw new InvalidError('a fenced update needs at least one column in `where`')
  return joined(
    where.map(([column, value]) => sql`${raw(identifier(column, dialect.quote))} = ${valueOf(value)}`),
    ' AND ',
  )
}

const GUARD_COLUMNS: readonly string[] = [TOKEN_COLUMN, LOCK_COLUMN, WRITES_COLUMN]

function assignable(column: string): string {
  if (GUARD_COLUMNS.includes(column)) throw new InvalidError(`${column} belongs to the guard`)
  return column
}

function withoutGuard(row: Row): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([column]) => !GUARD_COLUMNS.includes(column)))
}

/** A value of the caller, which the driver binds. */
function valueOf(value: unknown): Statement {
  return { parts: ['', ''], values: [value] }
}

function integer(dialect: Dialect, value: bigint): Statement {
  return cast(dialect.asInteger('\0'), value.toString())
}

function text(dialect: Dialect, value: string): Statement {
  return cast(dialect.asText('\0'), value)
}

/** An expression with one placeholder, `\0`, for a value. */
function cast(expression: string, value: string): Statement {
  return { parts: expression.split('\0'), values: [value] }
}
