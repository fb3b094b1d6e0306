import { InvalidError } from '@leasehold/core'
import { MissingRowError } from '../errors.js'
import { mismatch, staleToken, type Target } from '../resource.js'
import { type Dialect, identifier, tableName } from './dialect.js'
import { bigintOf, type Row, type Steps } from './steps.js'

/** The columns that the form `column` adds to a table. */
export const TOKEN_COLUMN = 'leasehold_token'
export const LOCK_COLUMN = 'leasehold_lock'

/** One row that carries its own mark. */
export interface RowChange {
  /** `table` or `schema.table`. */
  readonly table: string
  /** Column → value that finds the row: its key. */
  readonly where: Readonly<Record<string, unknown>>
  /** Column → new value. Without any, the row is only opened: its mark is raised, and the row is returned. */
  readonly set?: Readonly<Record<string, unknown>>
}

/**
 * Changes one row under its own mark, in one statement: accepted if the row's mark is not above the token.
 * Answers the row as it is now, without the guard's columns.
 * @throws StaleTokenError, MissingRowError, InvalidError (`mismatch`)
 */
export function* columnSteps(dialect: Dialect, target: Target, change: RowChange): Steps<Record<string, unknown>> {
  if (!target.writes || target.kind === 'slot') {
    throw new InvalidError('a mark on the row is for exclusive holds only', {
      code: 'mismatch',
      hint: 'shared holds and permits need the guard table: guard.with(hold, …)',
    })
  }
  const table = tableName(change.table)
  const text = new Placeholders(dialect)
  const token = () => text.integer(target.token.toString())
  const head = `UPDATE ${table} SET ${TOKEN_COLUMN} = ${token()}, ${LOCK_COLUMN} = ${text.text(target.lock)}`
  const set = Object.entries(change.set ?? {}).map(
    ([column, value]) => `, ${assignable(column)} = ${text.value(value)}`,
  )
  const condition = conditionOf(change, text)
  const rule = `${TOKEN_COLUMN} <= ${token()} AND coalesce(${LOCK_COLUMN}, ${text.text(target.lock)}) = ${text.text(target.lock)}`
  const rows = yield { text: `${head}${set.join('')} WHERE ${condition} AND ${rule} RETURNING *`, values: text.values }
  if (rows.length > 1) {
    throw new InvalidError(`a fenced update is for one row, and found ${rows.length}`, {
      hint: 'find the row by its key, and roll this transaction back',
    })
  }
  if (rows[0] !== undefined) return withoutGuard(rows[0])
  return yield* refuse(dialect, target, change)
}

/** Finds out, for the message only, why no row was changed. */
function* refuse(dialect: Dialect, target: Target, change: RowChange): Steps<never> {
  const text = new Placeholders(dialect)
  const columns = `${dialect.asText(TOKEN_COLUMN)} AS token, coalesce(${LOCK_COLUMN}, ${text.text(target.lock)}) AS lock`
  const condition = conditionOf(change, text)
  const [row] = yield {
    text: `SELECT ${columns} FROM ${tableName(change.table)} WHERE ${condition}`,
    values: text.values,
  }
  const where = Object.entries(change.where)
    .map(([column, value]) => `${column} = ${String(value)}`)
    .join(', ')
  if (row === undefined) throw new MissingRowError(change.table, where)
  const resource = `${change.table}(${where})`
  const problem = mismatch({ ...target, resource }, { kind: 'lock', lock: String(row.lock) }, 'lock')
  if (problem !== undefined) throw problem
  throw staleToken(resource, target.token, bigintOf(row.token))
}

function conditionOf(change: RowChange, text: Placeholders): string {
  const where = Object.entries(change.where ?? {})
  if (where.length === 0) throw new InvalidError('a fenced update finds its row by at least one column')
  return where.map(([column, value]) => `${identifier(column)} = ${text.value(value)}`).join(' AND ')
}

function assignable(column: string): string {
  if (column === TOKEN_COLUMN || column === LOCK_COLUMN) throw new InvalidError(`${column} belongs to the guard`)
  return identifier(column)
}

function withoutGuard(row: Row): Record<string, unknown> {
  const { [TOKEN_COLUMN]: _token, [LOCK_COLUMN]: _lock, ...rest } = row
  return rest
}

/** Numbers the placeholders of one statement. Must be asked in the order of the statement's text. */
class Placeholders {
  readonly values: unknown[] = []
  readonly #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  value(value: unknown): string {
    this.values.push(value)
    return this.#dialect.placeholder(this.values.length)
  }

  integer(value: string): string {
    return this.#dialect.asInteger(this.value(value))
  }

  text(value: string): string {
    return this.#dialect.asText(this.value(value))
  }
}
