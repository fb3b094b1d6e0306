import type { Target } from '../../common/resource.js'
import type { Dialect } from '../dialect.js'
import { FLOOR_TABLE, GUARD_TABLE, tableName } from '../names.js'
import { hexOf, isPlain, joined, raw, sql } from '../statement.js'

const row = ({ mark, token, kind, lock }: Target) =>
  sql`(${mark}, CAST(${token.toString()} AS INTEGER), ${kind}, ${lock})`

export function sqliteDialect(schema?: string): Dialect {
  const guard = raw(tableName(GUARD_TABLE, schema))
  const floor = raw(tableName(FLOOR_TABLE, schema))
  const raised = raw(
    'ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE g.token <= excluded.token ' +
      'AND g.kind = excluded.kind AND g.lock_name = excluded.lock_name RETURNING resource',
  )
  return {
    name: 'sqlite',
    quote: '"',
    placeholder: () => '?',
    literal: (value) => (isPlain(value) ? `'${value}'` : `CAST(x'${hexOf(value)}' AS TEXT)`),
    asInteger: (expression) => `CAST(${expression} AS INTEGER)`,
    asText: (expression) => `CAST(${expression} AS TEXT)`,
    floor: () => sql`SELECT CAST(token AS TEXT) AS floor FROM ${floor}`,
    lockShared: undefined,
    raiseLocked: (_proof, targets) =>
      sql`INSERT INTO ${guard} AS g (resource, token, kind, lock_name) SELECT v.column1, v.column2, v.column3, v.column4 FROM ${floor} AS f, (VALUES ${joined(targets.map(row), ', ')}) AS v WHERE v.column2 >= f.token ${raised}`,
    raise: (targets) =>
      sql`INSERT INTO ${guard} AS g (resource, token, kind, lock_name) VALUES ${joined(targets.map(row), ', ')} ${raised}`,
    readsBack: false,
    read: (marks) =>
      sql`SELECT resource, CAST(token AS TEXT) AS token, kind, lock_name AS lock FROM ${guard} WHERE resource IN (${joined(
        marks.map((mark) => sql`${mark}`),
        ', ',
      )})`,
    kind: (resource) => sql`SELECT kind, lock_name AS lock FROM ${guard} WHERE resource = ${resource}`,
    setKind: (resource, lock) =>
      sql`INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES (${resource}, 0, 'permits', ${lock}) ON CONFLICT (resource) DO NOTHING`,
    readOnly: undefined,
    lockExclusive: undefined,
    readFloor: () => sql`SELECT CAST(token AS TEXT) AS floor FROM ${floor}`,
    setFloor: (token) => sql`UPDATE ${floor} SET token = CAST(${token} AS INTEGER)`,
    pruneSlots: (token) =>
      sql`DELETE FROM ${guard} WHERE kind = 'slot' AND token < CAST(${token} AS INTEGER) RETURNING resource`,
    pruneKinds: () =>
      sql`DELETE FROM ${guard} WHERE kind = 'permits' AND NOT EXISTS (SELECT 1 FROM ${guard} AS s WHERE s.kind = 'slot' AND s.lock_name = ${guard}.lock_name AND substr(s.resource, 1, length(${guard}.resource) + 1) = ${guard}.resource || '#') RETURNING resource`,
    pruneMarks: (token, limit) =>
      sql`DELETE FROM ${guard} WHERE resource IN (SELECT resource FROM ${guard} WHERE kind = 'lock' AND token < CAST(${token} AS INTEGER) LIMIT ${raw(String(limit))}) RETURNING resource`,
  }
}
