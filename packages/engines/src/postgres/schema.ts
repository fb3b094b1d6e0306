import { InvalidError } from '@leasehold/core'

/** Of the tables and functions below. Another number in the database is another version of Leasehold. */
export const SCHEMA_VERSION = 1

export const SCHEMA_DEFAULT = 'leasehold'

/** Rows that one call hands out at most; who is further behind asks again. */
export const PAGE_ENTRIES = 2_000

/** Entries that stay behind the older of the two snapshots: clients that are behind, and watches, go on from there. */
export const KEPT_ENTRIES = 10_000

/** Errors that the functions raise, by SQLSTATE. */
export const RAISED = {
  /** The log does not contain the entry that the caller has seen last: it went back, or is another one. */
  wentBack: 'LH001',
  /** That entry is no longer kept: start from the snapshot. */
  gap: 'LH002',
  /** The caller's state differs from that of the others. */
  differs: 'LH003',
  /** An epoch must be greater than the present one. */
  epoch: 'LH004',
} as const

/**
 * A schema's name as an identifier of SQL.
 * @throws InvalidError for a name that needs quoting beyond `"…"`, or is longer than PostgreSQL keeps
 */
export function schemaIdentifier(schema: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,39}$/.test(schema)) return `"${schema}"`
  throw new InvalidError(`not a schema for lock state: ${JSON.stringify(schema.slice(0, 80))}`, {
    hint: 'letters, digits and _, at most 40',
  })
}

/**
 * The migration: what `leasehold engines sql postgres` prints, and what a client that may create a schema runs by itself.
 * It can be run again. `epoch` is the first one, above that of a service that this one replaces.
 */
export function postgresSql(options: { schema?: string; epoch?: number } = {}): string {
  const { schema = SCHEMA_DEFAULT, epoch = 1 } = options
  const S = schemaIdentifier(schema)
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > 32_767) {
    throw new InvalidError(`an epoch is 1 to 32767, not ${epoch}`)
  }
  return `-- Leasehold: lock state in PostgreSQL, version ${SCHEMA_VERSION}.
CREATE SCHEMA IF NOT EXISTS ${S};
${tables(S)}
${founding(S, epoch)}
${functions(S)}`
}

function tables(S: string): string {
  return `
-- Where the log ends. Its row lock is the order of everything: held from an append to its commit, never between calls.
CREATE TABLE IF NOT EXISTS ${S}.head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  service text NOT NULL,
  first_epoch bigint NOT NULL,
  epoch bigint NOT NULL,
  index bigint NOT NULL,
  nonce bigint NOT NULL,
  -- Service time in milliseconds, and the server's clock when it was that.
  at bigint NOT NULL,
  clock timestamptz NOT NULL,
  -- The server's timeline: another one means that a replica was promoted, or a backup restored. NULL: cannot be told.
  timeline text,
  checked_index bigint NOT NULL DEFAULT 0,
  checked_hash text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);

-- The log: sessions, holds, queues and registers are what its entries, applied in order, make of an empty state.
CREATE TABLE IF NOT EXISTS ${S}.entry (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  epoch bigint NOT NULL,
  at bigint NOT NULL,
  commands bytea NOT NULL
);

-- The state after an entry, so that the entries before it need not be kept.
CREATE TABLE IF NOT EXISTS ${S}.snapshot (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  state bytea NOT NULL,
  written timestamptz NOT NULL DEFAULT clock_timestamp()
);`
}

function founding(S: string, epoch: number): string {
  return `
DO $leasehold$
DECLARE
  line text;
BEGIN
  BEGIN
    line := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    CREATE OR REPLACE FUNCTION ${S}.timeline() RETURNS text LANGUAGE sql AS 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)';
  EXCEPTION WHEN OTHERS THEN
    line := NULL;
    CREATE OR REPLACE FUNCTION ${S}.timeline() RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
  END;
  IF EXISTS (SELECT FROM ${S}.head) THEN RETURN; END IF;
  INSERT INTO ${S}.head (version, service, first_epoch, epoch, index, nonce, at, clock, timeline)
    VALUES (${SCHEMA_VERSION}, replace(gen_random_uuid()::text, '-', ''), ${epoch}, ${epoch}, 0, 0, 0, clock_timestamp(), line)
    ON CONFLICT DO NOTHING;
END
$leasehold$;`
}

function functions(S: string): string {
  return `${seenFunction(S)}
${appendFunction(S)}
${sinceFunction(S)}
${compactFunction(S)}
${raiseFunction(S)}`
}

function seenFunction(S: string): string {
  return `
-- Whether the log still has the entry that the caller has seen last, with the same nonce.
CREATE OR REPLACE FUNCTION ${S}.seen(p_index bigint, p_nonce bigint, p_last bigint) RETURNS void
LANGUAGE plpgsql AS $leasehold$
DECLARE
  found_nonce bigint;
BEGIN
  IF p_index = 0 THEN
    IF p_last = 0 OR EXISTS (SELECT FROM ${S}.entry e WHERE e.index = 1) THEN RETURN; END IF;
    RAISE EXCEPTION 'the first entries are no longer kept' USING ERRCODE = '${RAISED.gap}';
  END IF;
  IF p_index > p_last THEN
    RAISE EXCEPTION 'the log ends at %, before the entry % that was seen', p_last, p_index USING ERRCODE = '${RAISED.wentBack}';
  END IF;
  SELECT e.nonce INTO found_nonce FROM ${S}.entry e WHERE e.index = p_index;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'entry % is no longer kept', p_index USING ERRCODE = '${RAISED.gap}';
  END IF;
  IF found_nonce <> p_nonce THEN
    RAISE EXCEPTION 'entry % is another one than was seen', p_index USING ERRCODE = '${RAISED.wentBack}';
  END IF;
END
$leasehold$;`
}

function appendFunction(S: string): string {
  return `
-- Appends an entry and returns the entries that the caller has not seen, the new one (without its commands) last. Nothing is
-- appended when the caller does not know the present epoch, is more than a page behind, or only wanted time to move and it
-- has. Time moves by the server's clock, but not by more than p_elapsed_ms, the caller's own measure since it saw p_index.
CREATE OR REPLACE FUNCTION ${S}.append(
  p_index bigint, p_nonce bigint, p_epoch bigint, p_elapsed_ms bigint,
  p_entry bigint, p_commands bytea, p_tick boolean, p_channel text,
  p_checked_index bigint, p_checked_hash text
) RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
  read timestamptz;
  passed bigint;
  line text := ${S}.timeline();
BEGIN
  -- The usual case in one statement: nobody has appended meanwhile, and nothing is to be checked.
  UPDATE ${S}.head d SET index = p_index + 1, nonce = p_entry, (at, clock) = (
      SELECT d.at + p.ms, CASE WHEN d.clock > r.now OR p.cut THEN r.now ELSE d.clock + p.ms * interval '1 millisecond' END
      FROM (SELECT clock_timestamp() AS now) r,
        LATERAL (SELECT greatest(floor(extract(epoch FROM r.now - d.clock) * 1000), 0)::bigint AS ms) m,
        LATERAL (SELECT least(m.ms, p_elapsed_ms) AS ms, coalesce(m.ms > p_elapsed_ms, false) AS cut) p
    )
    WHERE d.index = p_index AND d.nonce = p_nonce AND d.epoch = p_epoch AND d.checked_index = p_checked_index
      AND d.checked_hash = p_checked_hash AND (d.timeline IS NULL OR d.timeline = line)
    RETURNING d.* INTO h;
  IF FOUND THEN
    INSERT INTO ${S}.entry (index, nonce, epoch, at, commands) VALUES (h.index, p_entry, h.epoch, h.at, p_commands);
    IF p_channel <> '' THEN PERFORM pg_notify(p_channel, h.index::text); END IF;
    index := h.index; nonce := p_entry; epoch := h.epoch; at := h.at; commands := NULL;
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT * INTO STRICT h FROM ${S}.head FOR UPDATE;
  read := clock_timestamp();
  IF h.index <> p_index OR h.nonce <> p_nonce THEN
    PERFORM ${S}.seen(p_index, p_nonce, h.index);
    IF p_tick OR h.index - p_index > ${PAGE_ENTRIES} THEN
      RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM ${S}.entry e
        WHERE e.index > p_index ORDER BY e.index LIMIT ${PAGE_ENTRIES};
      RETURN;
    END IF;
    RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM ${S}.entry e
      WHERE e.index > p_index ORDER BY e.index;
  END IF;
  IF line <> h.timeline THEN
    UPDATE ${S}.head SET timeline = line;
    RETURN QUERY SELECT * FROM ${S}.raise_epoch(h.epoch + 1, p_entry # 1, p_channel);
    RETURN;
  END IF;
  IF p_epoch <> h.epoch THEN RETURN; END IF;
  IF p_checked_index > h.checked_index THEN
    h.checked_index := p_checked_index;
    h.checked_hash := p_checked_hash;
  ELSIF p_checked_index = h.checked_index AND h.checked_hash <> '' AND p_checked_hash <> h.checked_hash THEN
    RAISE EXCEPTION 'after entry % the state is % here and % elsewhere', p_checked_index, p_checked_hash, h.checked_hash
      USING ERRCODE = '${RAISED.differs}';
  END IF;
  passed := greatest(floor(extract(epoch FROM read - h.clock) * 1000), 0);
  IF p_elapsed_ms IS NOT NULL AND passed > p_elapsed_ms THEN
    passed := p_elapsed_ms;
    h.clock := read;
  ELSIF read < h.clock THEN
    h.clock := read;
  ELSE
    h.clock := h.clock + passed * interval '1 millisecond';
  END IF;
  UPDATE ${S}.head SET index = h.index + 1, nonce = p_entry, at = h.at + passed, clock = h.clock,
    checked_index = h.checked_index, checked_hash = h.checked_hash;
  INSERT INTO ${S}.entry (index, nonce, epoch, at, commands) VALUES (h.index + 1, p_entry, h.epoch, h.at + passed, p_commands);
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, h.epoch, h.at + passed, NULL::bytea;
END
$leasehold$;`
}

function sinceFunction(S: string): string {
  return `
-- The entries that the caller has not seen, a page at most.
CREATE OR REPLACE FUNCTION ${S}.since(p_index bigint, p_nonce bigint)
RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
BEGIN
  SELECT * INTO STRICT h FROM ${S}.head;
  IF h.index = p_index AND h.nonce = p_nonce THEN RETURN; END IF;
  PERFORM ${S}.seen(p_index, p_nonce, h.index);
  RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM ${S}.entry e
    WHERE e.index > p_index ORDER BY e.index LIMIT ${PAGE_ENTRIES};
END
$leasehold$;`
}

function compactFunction(S: string): string {
  return `
-- Stores the state after an entry, and drops what the two latest snapshots have made superfluous.
CREATE OR REPLACE FUNCTION ${S}.compact(p_index bigint, p_nonce bigint, p_state bytea) RETURNS void
LANGUAGE plpgsql AS $leasehold$
DECLARE
  oldest bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM ${S}.entry e WHERE e.index = p_index AND e.nonce = p_nonce) THEN RETURN; END IF;
  INSERT INTO ${S}.snapshot (index, nonce, state) VALUES (p_index, p_nonce, p_state) ON CONFLICT DO NOTHING;
  SELECT s.index INTO oldest FROM ${S}.snapshot s ORDER BY s.index DESC OFFSET 1 LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM ${S}.snapshot s WHERE s.index < oldest;
  DELETE FROM ${S}.entry e WHERE e.index < oldest - ${KEPT_ENTRIES};
END
$leasehold$;`
}

function raiseFunction(S: string): string {
  return `
-- Begins a greater epoch: every session, wait and ordinary hold ends; all later tokens are greater than all earlier ones.
CREATE OR REPLACE FUNCTION ${S}.raise_epoch(p_epoch bigint, p_entry bigint, p_channel text)
RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
BEGIN
  SELECT * INTO STRICT h FROM ${S}.head FOR UPDATE;
  IF p_epoch <= h.epoch OR p_epoch > 32767 THEN
    RAISE EXCEPTION 'the epoch is % already', h.epoch USING ERRCODE = '${RAISED.epoch}';
  END IF;
  UPDATE ${S}.head SET index = h.index + 1, nonce = p_entry, epoch = p_epoch, clock = clock_timestamp(), checked_index = h.index, checked_hash = '';
  INSERT INTO ${S}.entry (index, nonce, epoch, at, commands) VALUES (h.index + 1, p_entry, p_epoch, h.at, '\\x00');
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, p_epoch, h.at, '\\x00'::bytea;
END
$leasehold$;`
}
