import type { Target } from '../../common/resource.js'
import type { Dialect } from '../dialect.js'
import { FLOOR_TABLE, GUARD_TABLE, tableName } from '../names.js'
import { hexOf, isPlain, joined, raw, type Statement, sql } from '../statement.js'

/**
 * The dialect of MySQL and MariaDB. Locking reads and writes see the newest committed rows at every isolation level, and take no
 * snapshot. The guard uses nothing else, so the first plain read of the transaction comes after its statements.
 * Names are stored as bytes, because MySQL's collations treat `a` and `a ` as equal.
 */
export function mysqlDialect(schema?: string): Dialect {
  const guard = raw(tableName(GUARD_TABLE, schema, '`'))
  const floor = raw(tableName(FLOOR_TABLE, schema, '`'))
  const readable = raw('CONVERT(resource USING utf8mb4) AS resource, CAST(token AS CHAR) AS token, ')
  const kindAndLock = raw('CONVERT(kind USING utf8mb4) AS kind, CONVERT(lock_name USING utf8mb4) AS `lock`')
  return {
    name: 'mysql',
    quote: '`',
    placeholder: () => '?',
    literal: (value) => (isPlain(value) ? `'${value}'` : `CONVERT(x'${hexOf(value)}' USING utf8mb4)`),
    asInteger: (expression) => `CAST(${expression} AS SIGNED)`,
    asText: (expression) => `CAST(${expression} AS CHAR)`,
    floor: () => sql`SELECT CAST(token AS CHAR) AS floor FROM ${floor} LOCK IN SHARE MODE`,
    lockShared: undefined,
    raiseLocked: (_proof, targets) => {
      const { mark, token, kind, lock } = only(targets)
      const text = token.toString()
      return sql`INSERT INTO ${guard} (resource, token, kind, lock_name) SELECT ${mark}, CAST(${text} AS SIGNED), ${kind}, ${lock} FROM ${floor} AS f WHERE f.token <= CAST(${text} AS SIGNED) LOCK IN SHARE MODE ON DUPLICATE KEY UPDATE ${raising(only(targets), guard.fragment)}`
    },
    raise: (targets) => {
      const { mark, token, kind, lock } = only(targets)
      return sql`INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES (${mark}, CAST(${token.toString()} AS SIGNED), ${kind}, ${lock}) ON DUPLICATE KEY UPDATE ${raising(only(targets), guard.fragment)}`
    },
    readsBack: true,
    read: (marks) =>
      sql`SELECT ${readable}${kindAndLock} FROM ${guard} WHERE resource IN (${joined(
        marks.map((mark) => sql`${mark}`),
        ', ',
      )}) FOR UPDATE`,
    readShared: (mark) =>
      sql`SELECT ${readable}${kindAndLock} FROM ${guard} WHERE resource = ${mark} LOCK IN SHARE MODE`,
    kind: (resource) => sql`SELECT ${kindAndLock} FROM ${guard} WHERE resource = ${resource} LOCK IN SHARE MODE`,
    setKind: (resource, lock) =>
      sql`INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES (${resource}, 0, 'permits', ${lock}) ON DUPLICATE KEY UPDATE token = token`,
    readOnly: undefined,
    lockExclusive: undefined,
    readFloor: () => sql`SELECT CAST(token AS CHAR) AS floor FROM ${floor} FOR UPDATE`,
    setFloor: (token) => sql`UPDATE ${floor} SET token = CAST(${token} AS SIGNED)`,
    pruneSlots: (token) => sql`DELETE FROM ${guard} WHERE kind = 'slot' AND token < CAST(${token} AS SIGNED)`,
    pruneKinds: () =>
      sql`DELETE b FROM ${guard} AS b LEFT JOIN ${guard} AS s ON s.kind = 'slot' AND s.lock_name = b.lock_name AND LEFT(s.resource, LENGTH(b.resource) + 1) = CONCAT(b.resource, '#') WHERE b.kind = 'permits' AND s.resource IS NULL`,
    pruneMarks: (token, limit) =>
      sql`DELETE FROM ${guard} WHERE kind = 'lock' AND token < CAST(${token} AS SIGNED) LIMIT ${raw(String(limit))}`,
  }
}

/**
 * The assignments of the upsert. `ON DUPLICATE KEY UPDATE` has no WHERE. `opens` changes with every accepted opening, so that "two
 * affected rows" means accepted even if a holder opens twice with one token, and whether the connection counts found or changed
 * rows.
 */
function raising({ token, kind, lock }: Target, guard: string): Statement {
  const text = token.toString()
  const may = sql`${raw(guard)}.token <= CAST(${text} AS SIGNED) AND ${raw(guard)}.kind = ${kind} AND ${raw(guard)}.lock_name = ${lock}`
  return sql`opens = IF(${may}, opens + 1, opens), token = IF(${may}, CAST(${text} AS SIGNED), ${raw(guard)}.token)`
}

function only(targets: readonly Target[]): Target {
  return (targets as [Target])[0]
}
