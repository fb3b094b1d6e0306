import { InvalidError, LEVEL_FLOOR } from '@leasehold/core'
import { movedSql, sameSql, serverFunctions, storeSql } from './server-identity.js'
import { upgradeSql } from './upgrade.js'

/** The version of the tables and functions. */
export const SCHEMA_VERSION = 2

export const SCHEMA_DEFAULT = 'leasehold'

/** Rows that one call returns at most; a client that is further behind calls again. */
export const PAGE_ENTRIES = 2_000

/** Entries kept before the older of the two snapshots: slow clients and watches continue from there. */
export const KEPT_ENTRIES = 10_000

/** The SQLSTATEs of the errors that the functions raise. */
export const RAISED = {
  /** The log does not contain the entry that the caller has seen last: it went back, or is another one. */
  wentBack: 'LH001',
  /** That entry is no longer kept: start from the snapshot. */
  gap: 'LH002',
  /** The caller's state differs from that of the others. */
  differs: 'LH003',
  /** An epoch must be greater than the present one. */
  epoch: 'LH004',
  /** The server's clock is implausible, so a new service cannot tell where its tokens start. */
  clock: 'LH005',
  /** The tables were upgraded since this client connected. */
  version: 'LH006',
} as const

/**
 * The first statement of each function that clients call. The version is an argument so that what an older client calls does
 * not exist.
 */
const CHECK_VERSION = `IF p_version <> ${SCHEMA_VERSION} THEN
    RAISE EXCEPTION 'the tables have version ${SCHEMA_VERSION}, this client needs %', p_version USING ERRCODE = '${RAISED.version}';
  END IF;`

/** The columns of a log entry, with the settings that the database itself puts before the commands. */
const ROW = 'index bigint, nonce bigint, epoch bigint, at bigint, commands bytea, level integer, floor bigint'

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
 * It can be run again, and upgrades tables of version 1. `epoch` is the first one, above that of a service that this one
 * replaces; a service that is given one may be founded by a server whose clock is wrong.
 */
export function postgresSql(options: { schema?: string; epoch?: number } = {}): string {
  const { schema = SCHEMA_DEFAULT, epoch } = options
  const S = schemaIdentifier(schema)
  if (epoch !== undefined && (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > 32_767)) {
    throw new InvalidError(`an epoch is 1 to 32767, not ${epoch}`)
  }
  return `-- Leasehold: lock state in PostgreSQL, version ${SCHEMA_VERSION}.
CREATE SCHEMA IF NOT EXISTS ${S};
${serverFunctions(S)}
${upgradeSql(S)}
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
  -- What the log begins with: the epoch, the feature level of the state, and the counter above which it grants.
  first_epoch bigint NOT NULL,
  first_level integer NOT NULL,
  first_floor bigint NOT NULL,
  epoch bigint NOT NULL,
  index bigint NOT NULL,
  nonce bigint NOT NULL,
  -- Service time in milliseconds, and the server's clock when it was that.
  at bigint NOT NULL,
  clock timestamptz NOT NULL,
  -- The server that the last entry was written by. Another timeline or system identifier, or another OID of this table,
  -- means that a standby was promoted or a backup restored. NULL: cannot be read.
  timeline text,
  system text,
  home oid NOT NULL,
  -- When the server was started. Another start may have lost the last commits. NULL: the clock was wrong then.
  started timestamptz,
  checked_index bigint NOT NULL DEFAULT 0,
  checked_hash text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);

-- The log: sessions, holds, queues and registers are what its entries, applied in order, make of an empty state.
CREATE TABLE IF NOT EXISTS ${S}.log (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  epoch bigint NOT NULL,
  at bigint NOT NULL,
  commands bytea NOT NULL,
  -- What the database itself asks for before the commands: the feature level of the state, and a floor of its counter.
  level integer,
  floor bigint
);

-- The state after an entry, so that the entries before it need not be kept.
CREATE TABLE IF NOT EXISTS ${S}.snapshot (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  state bytea NOT NULL,
  written timestamptz NOT NULL DEFAULT clock_timestamp()
);`
}

function founding(S: string, epoch: number | undefined): string {
  const first = epoch ?? 1
  return `
DO $leasehold$
DECLARE
  s record;
  start bigint := ${S}.floor();
BEGIN
  IF EXISTS (SELECT FROM ${S}.head) THEN RETURN; END IF;
  IF start IS NULL AND ${epoch === undefined} THEN
    RAISE EXCEPTION 'the clock of the database server says %: tokens would start in the wrong place', clock_timestamp()
      USING ERRCODE = '${RAISED.clock}';
  END IF;
  SELECT * INTO s FROM ${S}.server();
  INSERT INTO ${S}.head (version, service, first_epoch, first_level, first_floor, epoch, index, nonce, at, clock,
      timeline, system, home, started)
    VALUES (${SCHEMA_VERSION}, replace(gen_random_uuid()::text, '-', ''), ${first}, ${LEVEL_FLOOR}, coalesce(start, 0), ${first}, 0, 0, 0,
      clock_timestamp(), s.timeline, s.system, '${S}.head'::regclass::oid, CASE WHEN start IS NULL THEN NULL ELSE s.started END)
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
    IF p_last = 0 OR EXISTS (SELECT FROM ${S}.log e WHERE e.index = 1) THEN RETURN; END IF;
    RAISE EXCEPTION 'the first entries are no longer kept' USING ERRCODE = '${RAISED.gap}';
  END IF;
  IF p_index > p_last THEN
    RAISE EXCEPTION 'the log ends at %, before the entry % that was seen', p_last, p_index USING ERRCODE = '${RAISED.wentBack}';
  END IF;
  SELECT e.nonce INTO found_nonce FROM ${S}.log e WHERE e.index = p_index;
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
  p_version integer, p_index bigint, p_nonce bigint, p_epoch bigint, p_elapsed_ms bigint,
  p_entry bigint, p_commands bytea, p_tick boolean, p_channel text,
  p_checked_index bigint, p_checked_hash text
) RETURNS TABLE (${ROW})
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
  s record;
  read timestamptz;
  passed bigint;
  raised bigint;
BEGIN
  ${CHECK_VERSION}
  -- For this transaction alone: with 'off' a crash would forget grants.
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  SELECT * INTO s FROM ${S}.server();
${appendAtHead(S)}${appendBehindHead(S)}END
$leasehold$;`
}

/** The usual case: the caller has seen the whole log, and nothing has to be checked. */
function appendAtHead(S: string): string {
  return `  -- The usual case in one statement: no other client has appended, and nothing has to be checked.
  UPDATE ${S}.head d SET index = p_index + 1, nonce = p_entry, (at, clock) = (
      SELECT d.at + p.ms, CASE WHEN d.clock > r.now OR p.cut THEN r.now ELSE d.clock + p.ms * interval '1 millisecond' END
      FROM (SELECT clock_timestamp() AS now) r,
        LATERAL (SELECT greatest(floor(extract(epoch FROM r.now - d.clock) * 1000), 0)::bigint AS ms) m,
        LATERAL (SELECT least(m.ms, p_elapsed_ms) AS ms, coalesce(m.ms > p_elapsed_ms, false) AS cut) p
    )
    WHERE d.index = p_index AND d.nonce = p_nonce AND d.epoch = p_epoch AND d.checked_index = p_checked_index
      AND d.checked_hash = p_checked_hash AND ${sameSql('d', 's', 'd.tableoid')}
    RETURNING d.* INTO h;
  IF FOUND THEN
    INSERT INTO ${S}.log (index, nonce, epoch, at, commands) VALUES (h.index, p_entry, h.epoch, h.at, p_commands);
    IF p_channel <> '' THEN PERFORM pg_notify(p_channel, h.index::text); END IF;
    index := h.index; nonce := p_entry; epoch := h.epoch; at := h.at; commands := NULL;
    level := NULL; floor := NULL;
    RETURN NEXT;
    RETURN;
  END IF;
`
}

/** Every other case: returns what the caller has not seen, and appends unless something speaks against it. */
function appendBehindHead(S: string): string {
  return `  SELECT * INTO STRICT h FROM ${S}.head FOR UPDATE;
  read := clock_timestamp();
  IF h.index <> p_index OR h.nonce <> p_nonce THEN
    PERFORM ${S}.seen(p_index, p_nonce, h.index);
    IF p_tick OR h.index - p_index > ${PAGE_ENTRIES} THEN
      RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands, e.level, e.floor FROM ${S}.log e
        WHERE e.index > p_index ORDER BY e.index LIMIT ${PAGE_ENTRIES};
      RETURN;
    END IF;
    RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands, e.level, e.floor FROM ${S}.log e
      WHERE e.index > p_index ORDER BY e.index;
  END IF;
  IF ${movedSql('h', 's', `'${S}.head'::regclass::oid`)} THEN
    RETURN QUERY SELECT * FROM ${S}.raise_epoch(p_version, h.epoch + 1, p_entry # 1, p_channel);
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
  IF ${sameSql('h', 's', 'h.home')} IS NOT TRUE THEN raised := ${S}.floor(); END IF;
  IF raised IS NOT NULL THEN
    -- An entry of its own, in which no time passes: with the next one sessions may end, and others be granted what they held.
    h.index := h.index + 1;
    INSERT INTO ${S}.log (index, nonce, epoch, at, commands, floor) VALUES (h.index, p_entry # 1, h.epoch, h.at, '\\x00', raised);
    RETURN QUERY SELECT h.index, p_entry # 1, h.epoch, h.at, '\\x00'::bytea, NULL::integer, raised;
  END IF;
  UPDATE ${S}.head SET index = h.index + 1, nonce = p_entry, at = h.at + passed, clock = h.clock,
    checked_index = h.checked_index, checked_hash = h.checked_hash, ${storeSql(S, 's', 'raised')};
  INSERT INTO ${S}.log (index, nonce, epoch, at, commands) VALUES (h.index + 1, p_entry, h.epoch, h.at + passed, p_commands);
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, h.epoch, h.at + passed, NULL::bytea, NULL::integer, NULL::bigint;
`
}

function sinceFunction(S: string): string {
  return `
-- The entries that the caller has not seen, a page at most.
CREATE OR REPLACE FUNCTION ${S}.since(p_version integer, p_index bigint, p_nonce bigint)
RETURNS TABLE (${ROW})
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
BEGIN
  ${CHECK_VERSION}
  SELECT * INTO STRICT h FROM ${S}.head;
  IF h.index = p_index AND h.nonce = p_nonce THEN RETURN; END IF;
  PERFORM ${S}.seen(p_index, p_nonce, h.index);
  RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands, e.level, e.floor FROM ${S}.log e
    WHERE e.index > p_index ORDER BY e.index LIMIT ${PAGE_ENTRIES};
END
$leasehold$;`
}

function compactFunction(S: string): string {
  return `
-- Stores the state after an entry, and drops what the two latest snapshots have made superfluous.
CREATE OR REPLACE FUNCTION ${S}.compact(p_version integer, p_index bigint, p_nonce bigint, p_state bytea) RETURNS void
LANGUAGE plpgsql AS $leasehold$
DECLARE
  oldest bigint;
BEGIN
  ${CHECK_VERSION}
  IF NOT EXISTS (SELECT FROM ${S}.log e WHERE e.index = p_index AND e.nonce = p_nonce) THEN RETURN; END IF;
  INSERT INTO ${S}.snapshot (index, nonce, state) VALUES (p_index, p_nonce, p_state) ON CONFLICT DO NOTHING;
  SELECT s.index INTO oldest FROM ${S}.snapshot s ORDER BY s.index DESC OFFSET 1 LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM ${S}.snapshot s WHERE s.index < oldest;
  DELETE FROM ${S}.log e WHERE e.index < oldest - ${KEPT_ENTRIES};
END
$leasehold$;`
}

function raiseFunction(S: string): string {
  return `
-- Begins a greater epoch: every session, wait and ordinary hold ends; all later tokens are greater than all earlier ones.
CREATE OR REPLACE FUNCTION ${S}.raise_epoch(p_version integer, p_epoch bigint, p_entry bigint, p_channel text)
RETURNS TABLE (${ROW})
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h ${S}.head;
  s record;
  raised bigint := ${S}.floor();
BEGIN
  ${CHECK_VERSION}
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  SELECT * INTO s FROM ${S}.server();
  SELECT * INTO STRICT h FROM ${S}.head FOR UPDATE;
  IF p_epoch <= h.epoch OR p_epoch > 32767 THEN
    RAISE EXCEPTION 'the epoch is % already', h.epoch USING ERRCODE = '${RAISED.epoch}';
  END IF;
  UPDATE ${S}.head SET index = h.index + 1, nonce = p_entry, epoch = p_epoch, clock = clock_timestamp(),
    checked_index = h.index, checked_hash = '', ${storeSql(S, 's', 'raised')};
  INSERT INTO ${S}.log (index, nonce, epoch, at, commands, floor) VALUES (h.index + 1, p_entry, p_epoch, h.at, '\\x00', raised);
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, p_epoch, h.at, '\\x00'::bytea, NULL::integer, raised;
END
$leasehold$;`
}
