import { InvalidError } from '@leasehold/core'
import { LOCK_COLUMN, TOKEN_COLUMN, WRITES_COLUMN } from './sql/column.js'
import { FLOOR_TABLE, GUARD_TABLE, identifier, tableName } from './sql/names.js'
import { pgTriggerSql } from './sql/postgres/trigger.js'

export const GUARD_KINDS = ['pg', 'mysql', 'sqlite'] as const
export type GuardKind = (typeof GUARD_KINDS)[number]

export interface GuardSqlOptions {
  /**
   * `table` (default): the guard table, for any number of resources. `column`: a mark on each row of `on`.
   * `trigger` (PostgreSQL): the guard table, and a trigger on `on` that rejects writers that have not opened the row's resource.
   */
  readonly form?: 'table' | 'column' | 'trigger'
  /** Your table, for `column` and `trigger`: `table` or `schema.table`. */
  readonly on?: string
  /** For `trigger`: the resource of a row, with columns in braces, such as `billing/{id}`. */
  readonly resource?: string
  /** Schema of the guard's own tables. Default: unqualified names. */
  readonly schema?: string
}

/**
 * Returns the migration of a guard, to be added to your own migrations. It is idempotent, except for the form `column` outside
 * of PostgreSQL, where an existing column is an error.
 * @throws InvalidError for a kind or form that does not exist
 * @example
 * await pool.query(guardSql('pg', { form: 'trigger', on: 'invoice', resource: 'billing/{id}' }))
 */
export function guardSql(kind: GuardKind, options: GuardSqlOptions = {}): string {
  const { form = 'table', on, resource, schema } = options
  if (!GUARD_KINDS.includes(kind)) {
    throw new InvalidError(`no guard for ${JSON.stringify(kind)}`, { hint: `there are ${GUARD_KINDS.join(', ')}` })
  }
  if (form === 'table') return tables(kind, schema)
  if (form !== 'column' && form !== 'trigger')
    throw new InvalidError(`no form ${JSON.stringify(form)}: table, column or trigger`)
  if (on === undefined) throw new InvalidError(`the form ${form} needs your table: { on: 'invoice' }`)
  if (form === 'column') return columns(kind, on)
  if (kind !== 'pg')
    throw new InvalidError(`${kind} has no form trigger: it has no settings that are local to a transaction`)
  if (resource === undefined) {
    throw new InvalidError('the form trigger needs the resource of a row', {
      hint: "such as { resource: 'billing/{id}' }",
    })
  }
  return tables(kind, schema) + pgTriggerSql({ table: on, resource, schema })
}

/** Names of types, and syntax, by database. */
const SYNTAX = {
  pg: { text: 'text COLLATE "C"', plain: 'text', integer: 'bigint', quote: '"', guarded: 'IF NOT EXISTS ' },
  sqlite: { text: 'TEXT', plain: 'TEXT', integer: 'INTEGER', quote: '"', guarded: '' },
  // Bytes, because MySQL's collations treat `a` and `a ` as equal. 1 040: a resource with `#` and a slot.
  mysql: { text: 'varbinary(1040)', plain: 'varbinary(1040)', integer: 'bigint', quote: '`', guarded: '' },
} as const

function tables(kind: GuardKind, schema: string | undefined): string {
  const { text, integer, quote } = SYNTAX[kind]
  const guard = tableName(GUARD_TABLE, schema, quote)
  const floor = tableName(FLOOR_TABLE, schema, quote)
  const mysql = kind === 'mysql'
  const create =
    kind === 'sqlite' || schema === undefined ? '' : `CREATE SCHEMA IF NOT EXISTS ${identifier(schema, quote)};\n`
  const end = { pg: '', mysql: ' ENGINE=InnoDB', sqlite: ' WITHOUT ROWID' }[kind]
  const opens = mysql ? `,\n  opens ${integer} NOT NULL DEFAULT 0` : ''
  const first = mysql
    ? `INSERT IGNORE INTO ${floor} (one, token) VALUES (1, 0)`
    : `INSERT INTO ${floor} (one, token) VALUES (1, 0) ON CONFLICT (one) DO NOTHING`
  return `${create}-- The highest fencing token that each resource has seen. Rows are deleted by prune only, never by hand.
CREATE TABLE IF NOT EXISTS ${guard} (
  resource ${text} NOT NULL PRIMARY KEY,
  token ${integer} NOT NULL CHECK (token >= 0),
  kind ${mysql ? 'varbinary(8)' : text} NOT NULL CHECK (kind IN ('lock', 'permits', 'slot')),
  lock_name ${text} NOT NULL${opens}
)${end};
-- Tokens below the floor are refused, also where a mark has been pruned.
CREATE TABLE IF NOT EXISTS ${floor} (
  one integer NOT NULL PRIMARY KEY CHECK (one = 1),
  token ${integer} NOT NULL CHECK (token >= 0)
)${mysql ? end : ''};
${first};
`
}

function columns(kind: GuardKind, on: string): string {
  const { integer, plain, quote, guarded } = SYNTAX[kind]
  const table = tableName(on, undefined, quote)
  const writes =
    kind === 'mysql' ? `ALTER TABLE ${table} ADD COLUMN ${WRITES_COLUMN} ${integer} NOT NULL DEFAULT 0;\n` : ''
  return `-- The highest fencing token that each row has seen, and the lock that it came from.
ALTER TABLE ${table} ADD COLUMN ${guarded}${TOKEN_COLUMN} ${integer} NOT NULL DEFAULT 0;
ALTER TABLE ${table} ADD COLUMN ${guarded}${LOCK_COLUMN} ${plain};
${writes}`
}
