import { FLOOR_CLOCK_MAX_MS, FLOOR_CLOCK_MIN_MS, FLOOR_ORIGIN_MS, FLOOR_PER_MS } from '@leasehold/core'

/** The functions that read each fact about the server, by column. Every client's role needs the right to call them. */
export const SERVER_FUNCTIONS = {
  timeline: ['pg_current_wal_lsn()', 'pg_walfile_name(pg_lsn)'],
  system: ['pg_control_system()'],
  started: ['pg_postmaster_start_time()'],
} as const

/**
 * Functions that tell which server this is, and where tokens start now. `server` returns NULL for what this role may not
 * read, or this server does not have. On a standby it fails.
 */
export function serverFunctions(S: string): string {
  return `
-- Which server this is. NULL: this role may not read it.
CREATE OR REPLACE FUNCTION ${S}.server(OUT timeline text, OUT system text, OUT started timestamptz)
LANGUAGE plpgsql AS $leasehold$
BEGIN
  -- A promotion is visible here at once; pg_control_checkpoint() shows it only after the next checkpoint.
  BEGIN
    timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN NULL;
  END;
  BEGIN
    system := (SELECT c.system_identifier::text FROM pg_control_system() c);
  EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN NULL;
  END;
  BEGIN
    started := pg_postmaster_start_time();
  EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN NULL;
  END;
END
$leasehold$;

-- The counter at which tokens continue now, above all that a lost server has granted: by this server's clock. NULL: it is wrong.
CREATE OR REPLACE FUNCTION ${S}.floor() RETURNS bigint
LANGUAGE sql AS $leasehold$
  SELECT CASE WHEN ms >= ${FLOOR_CLOCK_MIN_MS} AND ms < ${FLOOR_CLOCK_MAX_MS} THEN (ms - ${FLOOR_ORIGIN_MS}) * ${FLOOR_PER_MS} END
  FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) c
$leasehold$;`
}

/**
 * Whether the server `s` is another one than that of the head `h`, whose table has the OID `oid`. What either does not know is
 * not compared.
 */
export function movedSql(h: string, s: string, oid: string): string {
  return `(${h}.home <> ${oid} OR coalesce(${h}.timeline <> ${s}.timeline, false) OR coalesce(${h}.system <> ${s}.system, false))`
}

/** TRUE: the server `s` is that of the head `h` since the same start, and nothing about it is new. Otherwise a floor is needed. */
export function sameSql(h: string, s: string, oid: string): string {
  const columns = Object.keys(SERVER_FUNCTIONS)
  const same = columns.map((column) => `(${s}.${column} IS NULL OR ${h}.${column} = ${s}.${column})`)
  return `(${h}.home = ${oid} AND ${same.join(' AND ')})`
}

/** Assignments that store the server `s` in the head. Without a floor the old start stays, so that the floor comes later. */
export function storeSql(S: string, s: string, floor: string): string {
  return `timeline = coalesce(${s}.timeline, timeline), system = coalesce(${s}.system, system), home = '${S}.head'::regclass::oid,
    started = CASE WHEN ${floor} IS NULL THEN started ELSE coalesce(${s}.started, started) END`
}
