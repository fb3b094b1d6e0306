import { InvalidError, nameProblem } from '@leasehold/core'
import type { Target } from '../resource.js'
import type { Statement } from './steps.js'

export const GUARD_TABLE = 'leasehold_guard'
export const FLOOR_TABLE = 'leasehold_guard_floor'

/** How the SQL core talks to one kind of database. Every token is bound and read as decimal text. */
export interface Dialect {
  readonly name: 'pg' | 'sqlite'
  /** The n-th value of a statement, counted from 1. */
  placeholder(n: number): string
  asInteger(expression: string): string
  asText(expression: string): string
  /**
   * First statement: reads the floor as `floor`, and keeps `prune` away until the commit.
   * Also leaves `token` and `resources` in the transaction where triggers can see them.
   */
  floor(opening: { token: string; resources: string }): Statement
  /**
   * Keeps `prune` away until the commit, without a snapshot: to be run right behind BEGIN. Undefined where BEGIN does it.
   * After it one statement can do the work of `floor` and `raise`: {@link Dialect.raiseLocked}.
   */
  readonly lockShared: string | undefined
  /** `floor` and `raise` in one, after `lockShared`: raises nothing below the floor. */
  raiseLocked(proof: { token: string; resources: string }, targets: readonly Target[]): Statement
  /** Raises the marks where the rule allows it. Answers one row `resource` for each that was raised. */
  raise(targets: readonly Target[]): Statement
  /** Reads marks as `resource`, `token`, `kind`, `lock`. */
  read(marks: readonly string[]): Statement
  /** Reads a bare resource as `kind`, `lock`. Only `prune` deletes it, which the floor keeps away until the commit. */
  kind(resource: string): Statement
  /** Says that a resource is guarded by permits, unless something is said already. */
  setKind(resource: string, lock: string): Statement
  /** Refuses all writes of the rest of this transaction; undefined where the adapter does it. */
  readonly readOnly: Statement | undefined
  /** Keeps all checks away until the commit. Undefined where BEGIN does it. */
  readonly lockExclusive: string | undefined
  /** Reads the floor as `floor`. */
  readFloor(): Statement
  setFloor(floor: string): Statement
  /** Deletes marks of permits below the floor, then kinds that no permit's mark needs any more: rows `resource`. */
  pruneSlots(floor: string): Statement
  pruneKinds(): Statement
  /** Deletes at most `limit` marks of locks below the floor, without waiting for those that are being raised: rows `resource`. */
  pruneMarks(floor: string, limit: number): Statement
}

/** PostgreSQL cuts longer ones. */
const IDENTIFIER_LENGTH_MAX = 63

/** A quoted identifier. @throws InvalidError */
export function identifier(name: unknown): string {
  if (typeof name !== 'string' || name.length > IDENTIFIER_LENGTH_MAX || nameProblem(name) !== undefined) {
    throw new InvalidError(`not a name of a table, column or schema: ${JSON.stringify(name)}`)
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** `schema.table`, quoted; a table's name may itself be written `schema.table`. */
export function tableName(table: string, schema?: string): string {
  if (schema !== undefined) return `${identifier(schema)}.${identifier(table)}`
  if (typeof table !== 'string') return identifier(table)
  return table.split('.').map(identifier).join('.')
}

function guardTables(schema: string | undefined): { guard: string; floor: string } {
  return { guard: tableName(GUARD_TABLE, schema), floor: tableName(FLOOR_TABLE, schema) }
}

const valuesOf = ({ mark, token, kind, lock }: Target): string[] => [mark, token.toString(), kind, lock]

export function pgDialect(schema?: string): Dialect {
  const { guard, floor } = guardTables(schema)
  const raised =
    'ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE g.token <= EXCLUDED.token ' +
    'AND g.kind = EXCLUDED.kind AND g.lock_name = EXCLUDED.lock_name RETURNING g.resource'
  return {
    name: 'pg',
    placeholder: (n) => `$${n}`,
    asInteger: (expression) => `${expression}::bigint`,
    asText: (expression) => `${expression}::text`,
    floor: ({ token, resources }) => ({
      text:
        `SELECT f.token::text AS floor, set_config('leasehold.token', $1, true), ` +
        `set_config('leasehold.resources', (coalesce(nullif(current_setting('leasehold.resources', true), ''), ` +
        `'{}')::jsonb || $2::jsonb)::text, true) FROM ${floor} AS f FOR SHARE`,
      values: [token, resources],
    }),
    lockShared: `LOCK TABLE ${floor} IN ACCESS SHARE MODE`,
    raiseLocked: ({ token, resources }, targets) => ({
      text:
        `WITH f AS MATERIALIZED (SELECT token, set_config('leasehold.token', $1, true), ` +
        `set_config('leasehold.resources', $2, true) FROM ${floor}) ` +
        `INSERT INTO ${guard} AS g (resource, token, kind, lock_name) SELECT v.* FROM f, (VALUES ` +
        targets.map((_, i) => `($${i * 4 + 3}, $${i * 4 + 4}::bigint, $${i * 4 + 5}, $${i * 4 + 6})`).join(', ') +
        `) AS v (resource, token, kind, lock_name) WHERE v.token >= f.token ${raised}`,
      values: [token, resources, ...targets.flatMap(valuesOf)],
    }),
    raise: (targets) => ({
      text:
        `INSERT INTO ${guard} AS g (resource, token, kind, lock_name) VALUES ` +
        targets.map((_, i) => `($${i * 4 + 1}, $${i * 4 + 2}::bigint, $${i * 4 + 3}, $${i * 4 + 4})`).join(', ') +
        ` ${raised}, current_setting('leasehold.token', true) AS inside`,
      values: targets.flatMap(valuesOf),
    }),
    read: (marks) => ({
      text:
        `SELECT resource, token::text AS token, kind, lock_name AS lock FROM ${guard} WHERE resource IN ` +
        `(${marks.map((_, i) => `$${i + 1}`).join(', ')})`,
      values: marks,
    }),
    kind: (resource) => ({
      text: `SELECT kind, lock_name AS lock FROM ${guard} WHERE resource = $1`,
      values: [resource],
    }),
    setKind: (resource, lock) => ({
      text: `INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES ($1, 0, 'permits', $2) ON CONFLICT (resource) DO NOTHING`,
      values: [resource, lock],
    }),
    readOnly: { text: 'SET TRANSACTION READ ONLY', values: [] },
    lockExclusive: `LOCK TABLE ${floor} IN ACCESS EXCLUSIVE MODE`,
    readFloor: () => ({ text: `SELECT token::text AS floor FROM ${floor}`, values: [] }),
    setFloor: (token) => ({ text: `UPDATE ${floor} SET token = $1::bigint`, values: [token] }),
    pruneSlots: (token) => ({
      text: `DELETE FROM ${guard} WHERE kind = 'slot' AND token < $1::bigint RETURNING resource`,
      values: [token],
    }),
    pruneKinds: () => ({
      text:
        `DELETE FROM ${guard} AS b WHERE b.kind = 'permits' AND NOT EXISTS (SELECT 1 FROM ${guard} AS s ` +
        `WHERE s.kind = 'slot' AND s.lock_name = b.lock_name AND starts_with(s.resource, b.resource || '#')) RETURNING resource`,
      values: [],
    }),
    pruneMarks: (token, limit) => ({
      text:
        `DELETE FROM ${guard} WHERE kind = 'lock' AND token < $1::bigint AND resource IN (SELECT resource FROM ${guard} ` +
        `WHERE kind = 'lock' AND token < $1::bigint LIMIT ${limit} FOR UPDATE SKIP LOCKED) RETURNING resource`,
      values: [token],
    }),
  }
}

export function sqliteDialect(schema?: string): Dialect {
  const { guard, floor } = guardTables(schema)
  const integer = 'CAST(? AS INTEGER)'
  const raised =
    'ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE g.token <= excluded.token ' +
    'AND g.kind = excluded.kind AND g.lock_name = excluded.lock_name RETURNING resource'
  return {
    name: 'sqlite',
    placeholder: () => '?',
    asInteger: (expression) => `CAST(${expression} AS INTEGER)`,
    asText: (expression) => `CAST(${expression} AS TEXT)`,
    floor: () => ({ text: `SELECT CAST(token AS TEXT) AS floor FROM ${floor}`, values: [] }),
    lockShared: undefined,
    raiseLocked: (_proof, targets) => ({
      text:
        `INSERT INTO ${guard} AS g (resource, token, kind, lock_name) SELECT v.column1, v.column2, v.column3, v.column4 ` +
        `FROM ${floor} AS f, (VALUES ${targets.map(() => `(?, ${integer}, ?, ?)`).join(', ')}) AS v ` +
        `WHERE v.column2 >= f.token ${raised}`,
      values: targets.flatMap(valuesOf),
    }),
    raise: (targets) => ({
      text:
        `INSERT INTO ${guard} AS g (resource, token, kind, lock_name) VALUES ` +
        targets.map(() => `(?, ${integer}, ?, ?)`).join(', ') +
        ` ${raised}`,
      values: targets.flatMap(valuesOf),
    }),
    read: (marks) => ({
      text:
        `SELECT resource, CAST(token AS TEXT) AS token, kind, lock_name AS lock FROM ${guard} ` +
        `WHERE resource IN (${marks.map(() => '?').join(', ')})`,
      values: marks,
    }),
    kind: (resource) => ({
      text: `SELECT kind, lock_name AS lock FROM ${guard} WHERE resource = ?`,
      values: [resource],
    }),
    setKind: (resource, lock) => ({
      text: `INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES (?, 0, 'permits', ?) ON CONFLICT (resource) DO NOTHING`,
      values: [resource, lock],
    }),
    readOnly: undefined,
    lockExclusive: undefined,
    readFloor: () => ({ text: `SELECT CAST(token AS TEXT) AS floor FROM ${floor}`, values: [] }),
    setFloor: (token) => ({ text: `UPDATE ${floor} SET token = ${integer}`, values: [token] }),
    pruneSlots: (token) => ({
      text: `DELETE FROM ${guard} WHERE kind = 'slot' AND token < ${integer} RETURNING resource`,
      values: [token],
    }),
    pruneKinds: () => ({
      text:
        `DELETE FROM ${guard} WHERE kind = 'permits' AND NOT EXISTS (SELECT 1 FROM ${guard} AS s WHERE s.kind = 'slot' ` +
        `AND s.lock_name = ${guard}.lock_name AND substr(s.resource, 1, length(${guard}.resource) + 1) = ${guard}.resource || '#') RETURNING resource`,
      values: [],
    }),
    pruneMarks: (token, limit) => ({
      text:
        `DELETE FROM ${guard} WHERE resource IN (SELECT resource FROM ${guard} ` +
        `WHERE kind = 'lock' AND token < ${integer} LIMIT ${limit}) RETURNING resource`,
      values: [token],
    }),
  }
}
