import { InvalidError } from '@leasehold/core'

export type GuardKind = 'pg' | 'sqlite'

export interface GuardSqlOptions {
  /**
   * `table` (default): the guard table, for any number of resources. `column`: a mark on each row of `on`.
   * `trigger` (pg): the guard table, and a trigger on `on` that refuses writers without a token.
   */
  readonly form?: 'table' | 'column' | 'trigger'
  /** The user's table, for `column` and `trigger`; may be `schema.table`. */
  readonly on?: string
}

/** Name of the column that `column` and `trigger` add. */
export const TOKEN_COLUMN = 'leasehold_token'

/** SQLSTATEs of the refusals in PostgreSQL. */
export const PG_UNFENCED = 'LH001'
export const PG_STALE = 'LH002'
export const PG_MISMATCH = 'LH003'

/**
 * The migration of a guard: safe to run again, and to put into the user's own migrations.
 * @throws InvalidError for a kind or form that does not exist
 */
export function guardSql(kind: GuardKind, options: GuardSqlOptions = {}): string {
  const { form = 'table', on } = options
  if (kind !== 'pg' && kind !== 'sqlite') throw new InvalidError(`no guard for ${JSON.stringify(kind)}: pg or sqlite`)
  if (form !== 'table' && on === undefined) throw new InvalidError(`the form ${form} needs a table`)
  if (form === 'table') return kind === 'pg' ? PG_TABLE : SQLITE_TABLE
  const table = quoteTable(on as string)
  if (form === 'column') {
    const exists = kind === 'pg' ? 'IF NOT EXISTS ' : ''
    return `ALTER TABLE ${table} ADD COLUMN ${exists}${TOKEN_COLUMN} bigint NOT NULL DEFAULT 0;\n`
  }
  if (form !== 'trigger' || kind !== 'pg') throw new InvalidError(`no form ${JSON.stringify(form)} for ${kind}`)
  return PG_TABLE + triggerSql(table)
}

/** Quotes `table` or `schema.table`; refuses what no table is called. */
export function quoteTable(name: string): string {
  const parts = name.split('.')
  if (parts.length > 2 || parts.some((part) => part === '' || part.includes('\0'))) {
    throw new InvalidError(`not the name of a table: ${JSON.stringify(name)}`)
  }
  return parts.map(quoteName).join('.')
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const PG_TABLE = `-- Marks of fencing tokens: the highest token that each resource has seen. Never delete rows by hand.
CREATE TABLE IF NOT EXISTS leasehold_guard (
  resource text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('lock', 'permits')),
  token bigint NOT NULL CHECK (token >= 0)
);
-- No token below the floor is accepted; marks below it may be deleted (prune).
CREATE TABLE IF NOT EXISTS leasehold_guard_floor (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  token bigint NOT NULL DEFAULT 0
);
INSERT INTO leasehold_guard_floor DEFAULT VALUES ON CONFLICT DO NOTHING;

-- Raises the mark of a resource in the caller's transaction, or makes the transaction fail.
CREATE OR REPLACE FUNCTION leasehold_enter(p_resource text, p_kind text, p_slot integer, p_token bigint)
RETURNS text LANGUAGE plpgsql AS $leasehold$
DECLARE
  v_row text := CASE WHEN p_slot IS NULL THEN p_resource ELSE p_resource || '#' || p_slot END;
  v_kind text;
  v_mark bigint;
BEGIN
  -- Held until the end of the transaction: a prune waits for it, so no mark vanishes under a writer that saw the old floor.
  SELECT token INTO v_mark FROM leasehold_guard_floor FOR SHARE;
  IF v_mark IS NULL THEN
    RAISE EXCEPTION 'leasehold_guard_floor is empty: run the migration again' USING ERRCODE = '55000';
  END IF;
  IF v_mark > p_token THEN
    RAISE EXCEPTION 'stale fencing token % for %', p_token, v_row USING ERRCODE = '${PG_STALE}', DETAIL = v_mark::text;
  END IF;
  IF p_kind = 'permits' THEN
    INSERT INTO leasehold_guard (resource, kind, token) VALUES (p_resource, p_kind, 0) ON CONFLICT DO NOTHING;
    SELECT kind INTO v_kind FROM leasehold_guard WHERE resource = p_resource FOR SHARE;
    IF v_kind IS DISTINCT FROM p_kind THEN
      RAISE EXCEPTION '% is of the kind %', p_resource, v_kind USING ERRCODE = '${PG_MISMATCH}', DETAIL = v_kind;
    END IF;
  END IF;
  INSERT INTO leasehold_guard AS g (resource, kind, token) VALUES (v_row, p_kind, p_token)
    ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token
    WHERE g.kind = EXCLUDED.kind AND g.token <= EXCLUDED.token;
  IF NOT FOUND THEN
    SELECT kind, token INTO v_kind, v_mark FROM leasehold_guard WHERE resource = v_row;
    IF v_kind <> p_kind THEN
      RAISE EXCEPTION '% is of the kind %', v_row, v_kind USING ERRCODE = '${PG_MISMATCH}', DETAIL = v_kind;
    END IF;
    RAISE EXCEPTION 'stale fencing token % for %', p_token, v_row USING ERRCODE = '${PG_STALE}', DETAIL = v_mark::text;
  END IF;
  PERFORM set_config('leasehold.token', p_token::text, true);
  RETURN txid_current()::text;
END $leasehold$;

-- Raises the floor, then forgets the marks below it. The kind of a semaphore stays while one of its slots has a mark.
CREATE OR REPLACE FUNCTION leasehold_prune(p_floor bigint) RETURNS bigint LANGUAGE plpgsql AS $leasehold$
DECLARE
  v_deleted bigint;
BEGIN
  UPDATE leasehold_guard_floor SET token = greatest(token, p_floor);
  DELETE FROM leasehold_guard g WHERE g.token < p_floor AND NOT (
    g.kind = 'permits' AND g.token = 0 AND EXISTS (
      SELECT 1 FROM leasehold_guard s WHERE starts_with(s.resource, g.resource || '#') AND s.token >= p_floor
    )
  );
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RETURN v_deleted;
END $leasehold$;
`

function triggerSql(table: string): string {
  return `
-- Refuses every writer of ${table} that has not opened a guard in its transaction.
ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${TOKEN_COLUMN} bigint NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION leasehold_fenced() RETURNS trigger LANGUAGE plpgsql AS $leasehold$
DECLARE
  v_token bigint := nullif(current_setting('leasehold.token', true), '')::bigint;
BEGIN
  IF v_token IS NULL THEN
    RAISE EXCEPTION 'write to % without a fencing token', TG_TABLE_NAME USING ERRCODE = '${PG_UNFENCED}';
  END IF;
  IF TG_OP <> 'INSERT' AND OLD.${TOKEN_COLUMN} > v_token THEN
    RAISE EXCEPTION 'stale fencing token % for a row of %', v_token, TG_TABLE_NAME
      USING ERRCODE = '${PG_STALE}', DETAIL = OLD.${TOKEN_COLUMN}::text;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.${TOKEN_COLUMN} := v_token;
  RETURN NEW;
END $leasehold$;
DROP TRIGGER IF EXISTS leasehold_fenced ON ${table};
CREATE TRIGGER leasehold_fenced BEFORE INSERT OR UPDATE OR DELETE ON ${table}
  FOR EACH ROW EXECUTE FUNCTION leasehold_fenced();
CREATE OR REPLACE FUNCTION leasehold_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $leasehold$
BEGIN
  IF nullif(current_setting('leasehold.token', true), '') IS NULL THEN
    RAISE EXCEPTION 'truncate of % without a fencing token', TG_TABLE_NAME USING ERRCODE = '${PG_UNFENCED}';
  END IF;
  RETURN NULL;
END $leasehold$;
DROP TRIGGER IF EXISTS leasehold_no_truncate ON ${table};
CREATE TRIGGER leasehold_no_truncate BEFORE TRUNCATE ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION leasehold_no_truncate();
`
}

const SQLITE_TABLE = `-- Marks of fencing tokens: the highest token that each resource has seen. Never delete rows by hand.
CREATE TABLE IF NOT EXISTS leasehold_guard (
  resource TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('lock', 'permits')),
  token INTEGER NOT NULL CHECK (token >= 0)
) WITHOUT ROWID;
-- No token below the floor is accepted; marks below it may be deleted (prune).
CREATE TABLE IF NOT EXISTS leasehold_guard_floor (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  token INTEGER NOT NULL DEFAULT 0
);
INSERT OR IGNORE INTO leasehold_guard_floor (one, token) VALUES (1, 0);
`
