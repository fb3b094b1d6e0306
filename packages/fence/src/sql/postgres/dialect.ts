import type { Target } from '../../common/resource.js'
import type { Dialect } from '../dialect.js'
import { FLOOR_TABLE, GUARD_TABLE, tableName } from '../names.js'
import { type Fragment, hexOf, isPlain, joined, raw, type Statement, sql } from '../statement.js'

const row = ({ mark, token, kind, lock }: Target) => sql`(${mark}, ${token.toString()}::bigint, ${kind}, ${lock})`

/** Selects the rows of targets that are not below the floor. A single target is planned faster without a list. */
function aboveFloor(floor: Fragment, targets: readonly Target[]): Statement {
  const [only, ...more] = targets as [Target, ...Target[]]
  if (more.length > 0) {
    return sql`SELECT v.* FROM ${floor} AS f, (VALUES ${joined(targets.map(row), ', ')}) AS v (resource, token, kind, lock_name) WHERE v.token >= f.token`
  }
  const { mark, token, kind, lock } = only
  const text = token.toString()
  return sql`SELECT ${mark}, ${text}::bigint, ${kind}, ${lock} FROM ${floor} AS f WHERE f.token <= ${text}::bigint`
}

/** The message of the error that {@link PG_STILL_INSIDE} raises. */
export const ENDED_INSIDE = 'a statement has ended the guarded transaction'

/**
 * Fails unless the transaction is the one that was opened: its local settings vanish with it, even if another transaction has
 * begun since. It also fails after a failed statement.
 */
export const PG_STILL_INSIDE = `SELECT CASE WHEN s = '' THEN ('${ENDED_INSIDE}' || s)::int END FROM (SELECT coalesce(current_setting('leasehold.token', true), '') AS s) AS t`

/** A statement that always fails, and makes its transaction fail. */
export const POISON = "DO $$ BEGIN RAISE EXCEPTION 'the guard has refused this transaction'; END $$"

export function pgDialect(schema?: string): Dialect {
  const guard = raw(tableName(GUARD_TABLE, schema))
  const floor = raw(tableName(FLOOR_TABLE, schema))
  const raised = raw(
    'ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE g.token <= EXCLUDED.token ' +
      'AND g.kind = EXCLUDED.kind AND g.lock_name = EXCLUDED.lock_name RETURNING g.resource',
  )
  return {
    name: 'pg',
    quote: '"',
    placeholder: (n) => `$${n}`,
    literal: (value) => (isPlain(value) ? `'${value}'` : `convert_from(decode('${hexOf(value)}', 'hex'), 'UTF8')`),
    asInteger: (expression) => `${expression}::bigint`,
    asText: (expression) => `${expression}::text`,
    floor: ({ token, resources }) =>
      sql`SELECT f.token::text AS floor, set_config('leasehold.token', ${token}, true), set_config('leasehold.resources', (coalesce(nullif(current_setting('leasehold.resources', true), ''), '{}')::jsonb || ${resources}::jsonb)::text, true) FROM ${floor} AS f FOR SHARE`,
    lockShared: `LOCK TABLE ${floor.fragment} IN ACCESS SHARE MODE`,
    // Only raised rows set the settings. If none was raised, the transaction fails anyway.
    raiseLocked: ({ token, resources }, targets) =>
      sql`INSERT INTO ${guard} AS g (resource, token, kind, lock_name) ${aboveFloor(floor, targets)} ${raised}, set_config('leasehold.token', ${token}, true), set_config('leasehold.resources', ${resources}, true)`,
    raise: (targets) =>
      sql`INSERT INTO ${guard} AS g (resource, token, kind, lock_name) VALUES ${joined(targets.map(row), ', ')} ${raised}, current_setting('leasehold.token', true) AS inside`,
    readsBack: false,
    read: (marks) =>
      sql`SELECT resource, token::text AS token, kind, lock_name AS lock FROM ${guard} WHERE resource IN (${joined(
        marks.map((mark) => sql`${mark}`),
        ', ',
      )})`,
    kind: (resource) => sql`SELECT kind, lock_name AS lock FROM ${guard} WHERE resource = ${resource}`,
    setKind: (resource, lock) =>
      sql`INSERT INTO ${guard} (resource, token, kind, lock_name) VALUES (${resource}, 0, 'permits', ${lock}) ON CONFLICT (resource) DO NOTHING`,
    readOnly: 'SET TRANSACTION READ ONLY',
    lockExclusive: `LOCK TABLE ${floor.fragment} IN ACCESS EXCLUSIVE MODE`,
    readFloor: () => sql`SELECT token::text AS floor FROM ${floor}`,
    setFloor: (token) => sql`UPDATE ${floor} SET token = ${token}::bigint`,
    pruneSlots: (token) =>
      sql`DELETE FROM ${guard} WHERE kind = 'slot' AND token < ${token}::bigint RETURNING resource`,
    pruneKinds: () =>
      sql`DELETE FROM ${guard} AS b WHERE b.kind = 'permits' AND NOT EXISTS (SELECT 1 FROM ${guard} AS s WHERE s.kind = 'slot' AND s.lock_name = b.lock_name AND starts_with(s.resource, b.resource || '#')) RETURNING resource`,
    pruneMarks: (token, limit) =>
      sql`DELETE FROM ${guard} WHERE kind = 'lock' AND token < ${token}::bigint AND resource IN (SELECT resource FROM ${guard} WHERE kind = 'lock' AND token < ${token}::bigint LIMIT ${raw(String(limit))} FOR UPDATE SKIP LOCKED) RETURNING resource`,
  }
}
