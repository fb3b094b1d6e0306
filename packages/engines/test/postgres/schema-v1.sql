-- Leasehold: lock state in PostgreSQL, version 1.
CREATE SCHEMA IF NOT EXISTS "SCHEMA";

-- Where the log ends. Its row lock is the order of everything: held from an append to its commit, never between calls.
CREATE TABLE IF NOT EXISTS "SCHEMA".head (
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
CREATE TABLE IF NOT EXISTS "SCHEMA".entry (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  epoch bigint NOT NULL,
  at bigint NOT NULL,
  commands bytea NOT NULL
);

-- The state after an entry, so that the entries before it need not be kept.
CREATE TABLE IF NOT EXISTS "SCHEMA".snapshot (
  index bigint PRIMARY KEY,
  nonce bigint NOT NULL,
  state bytea NOT NULL,
  written timestamptz NOT NULL DEFAULT clock_timestamp()
);

DO $leasehold$
DECLARE
  line text;
BEGIN
  BEGIN
    line := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    CREATE OR REPLACE FUNCTION "SCHEMA".timeline() RETURNS text LANGUAGE sql AS 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)';
  EXCEPTION WHEN OTHERS THEN
    line := NULL;
    CREATE OR REPLACE FUNCTION "SCHEMA".timeline() RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
  END;
  IF EXISTS (SELECT FROM "SCHEMA".head) THEN RETURN; END IF;
  INSERT INTO "SCHEMA".head (version, service, first_epoch, epoch, index, nonce, at, clock, timeline)
    VALUES (1, replace(gen_random_uuid()::text, '-', ''), 1, 1, 0, 0, 0, clock_timestamp(), line)
    ON CONFLICT DO NOTHING;
END
$leasehold$;

-- Whether the log still has the entry that the caller has seen last, with the same nonce.
CREATE OR REPLACE FUNCTION "SCHEMA".seen(p_index bigint, p_nonce bigint, p_last bigint) RETURNS void
LANGUAGE plpgsql AS $leasehold$
DECLARE
  found_nonce bigint;
BEGIN
  IF p_index = 0 THEN
    IF p_last = 0 OR EXISTS (SELECT FROM "SCHEMA".entry e WHERE e.index = 1) THEN RETURN; END IF;
    RAISE EXCEPTION 'the first entries are no longer kept' USING ERRCODE = 'LH002';
  END IF;
  IF p_index > p_last THEN
    RAISE EXCEPTION 'the log ends at %, before the entry % that was seen', p_last, p_index USING ERRCODE = 'LH001';
  END IF;
  SELECT e.nonce INTO found_nonce FROM "SCHEMA".entry e WHERE e.index = p_index;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'entry % is no longer kept', p_index USING ERRCODE = 'LH002';
  END IF;
  IF found_nonce <> p_nonce THEN
    RAISE EXCEPTION 'entry % is another one than was seen', p_index USING ERRCODE = 'LH001';
  END IF;
END
$leasehold$;

-- Appends an entry and returns the entries that the caller has not seen, the new one (without its commands) last. Nothing is
-- appended when the caller does not know the present epoch, is more than a page behind, or only wanted time to move and it
-- has. Time moves by the server's clock, but not by more than p_elapsed_ms, the caller's own measure since it saw p_index.
CREATE OR REPLACE FUNCTION "SCHEMA".append(
  p_index bigint, p_nonce bigint, p_epoch bigint, p_elapsed_ms bigint,
  p_entry bigint, p_commands bytea, p_tick boolean, p_channel text,
  p_checked_index bigint, p_checked_hash text
) RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h "SCHEMA".head;
  read timestamptz;
  passed bigint;
  line text := "SCHEMA".timeline();
BEGIN
  -- The usual case in one statement: nobody has appended meanwhile, and nothing is to be checked.
  UPDATE "SCHEMA".head d SET index = p_index + 1, nonce = p_entry, (at, clock) = (
      SELECT d.at + p.ms, CASE WHEN d.clock > r.now OR p.cut THEN r.now ELSE d.clock + p.ms * interval '1 millisecond' END
      FROM (SELECT clock_timestamp() AS now) r,
        LATERAL (SELECT greatest(floor(extract(epoch FROM r.now - d.clock) * 1000), 0)::bigint AS ms) m,
        LATERAL (SELECT least(m.ms, p_elapsed_ms) AS ms, coalesce(m.ms > p_elapsed_ms, false) AS cut) p
    )
    WHERE d.index = p_index AND d.nonce = p_nonce AND d.epoch = p_epoch AND d.checked_index = p_checked_index
      AND d.checked_hash = p_checked_hash AND (d.timeline IS NULL OR d.timeline = line)
    RETURNING d.* INTO h;
  IF FOUND THEN
    INSERT INTO "SCHEMA".entry (index, nonce, epoch, at, commands) VALUES (h.index, p_entry, h.epoch, h.at, p_commands);
    IF p_channel <> '' THEN PERFORM pg_notify(p_channel, h.index::text); END IF;
    index := h.index; nonce := p_entry; epoch := h.epoch; at := h.at; commands := NULL;
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT * INTO STRICT h FROM "SCHEMA".head FOR UPDATE;
  read := clock_timestamp();
  IF h.index <> p_index OR h.nonce <> p_nonce THEN
    PERFORM "SCHEMA".seen(p_index, p_nonce, h.index);
    IF p_tick OR h.index - p_index > 2000 THEN
      RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM "SCHEMA".entry e
        WHERE e.index > p_index ORDER BY e.index LIMIT 2000;
      RETURN;
    END IF;
    RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM "SCHEMA".entry e
      WHERE e.index > p_index ORDER BY e.index;
  END IF;
  IF line <> h.timeline THEN
    UPDATE "SCHEMA".head SET timeline = line;
    RETURN QUERY SELECT * FROM "SCHEMA".raise_epoch(h.epoch + 1, p_entry # 1, p_channel);
    RETURN;
  END IF;
  IF p_epoch <> h.epoch THEN RETURN; END IF;
  IF p_checked_index > h.checked_index THEN
    h.checked_index := p_checked_index;
    h.checked_hash := p_checked_hash;
  ELSIF p_checked_index = h.checked_index AND h.checked_hash <> '' AND p_checked_hash <> h.checked_hash THEN
    RAISE EXCEPTION 'after entry % the state is % here and % elsewhere', p_checked_index, p_checked_hash, h.checked_hash
      USING ERRCODE = 'LH003';
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
  UPDATE "SCHEMA".head SET index = h.index + 1, nonce = p_entry, at = h.at + passed, clock = h.clock,
    checked_index = h.checked_index, checked_hash = h.checked_hash;
  INSERT INTO "SCHEMA".entry (index, nonce, epoch, at, commands) VALUES (h.index + 1, p_entry, h.epoch, h.at + passed, p_commands);
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, h.epoch, h.at + passed, NULL::bytea;
END
$leasehold$;

-- The entries that the caller has not seen, a page at most.
CREATE OR REPLACE FUNCTION "SCHEMA".since(p_index bigint, p_nonce bigint)
RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h "SCHEMA".head;
BEGIN
  SELECT * INTO STRICT h FROM "SCHEMA".head;
  IF h.index = p_index AND h.nonce = p_nonce THEN RETURN; END IF;
  PERFORM "SCHEMA".seen(p_index, p_nonce, h.index);
  RETURN QUERY SELECT e.index, e.nonce, e.epoch, e.at, e.commands FROM "SCHEMA".entry e
    WHERE e.index > p_index ORDER BY e.index LIMIT 2000;
END
$leasehold$;

-- Stores the state after an entry, and drops what the two latest snapshots have made superfluous.
CREATE OR REPLACE FUNCTION "SCHEMA".compact(p_index bigint, p_nonce bigint, p_state bytea) RETURNS void
LANGUAGE plpgsql AS $leasehold$
DECLARE
  oldest bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM "SCHEMA".entry e WHERE e.index = p_index AND e.nonce = p_nonce) THEN RETURN; END IF;
  INSERT INTO "SCHEMA".snapshot (index, nonce, state) VALUES (p_index, p_nonce, p_state) ON CONFLICT DO NOTHING;
  SELECT s.index INTO oldest FROM "SCHEMA".snapshot s ORDER BY s.index DESC OFFSET 1 LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM "SCHEMA".snapshot s WHERE s.index < oldest;
  DELETE FROM "SCHEMA".entry e WHERE e.index < oldest - 10000;
END
$leasehold$;

-- Begins a greater epoch: every session, wait and ordinary hold ends; all later tokens are greater than all earlier ones.
CREATE OR REPLACE FUNCTION "SCHEMA".raise_epoch(p_epoch bigint, p_entry bigint, p_channel text)
RETURNS TABLE (index bigint, nonce bigint, epoch bigint, at bigint, commands bytea)
LANGUAGE plpgsql AS $leasehold$
#variable_conflict use_column
DECLARE
  h "SCHEMA".head;
BEGIN
  SELECT * INTO STRICT h FROM "SCHEMA".head FOR UPDATE;
  IF p_epoch <= h.epoch OR p_epoch > 32767 THEN
    RAISE EXCEPTION 'the epoch is % already', h.epoch USING ERRCODE = 'LH004';
  END IF;
  UPDATE "SCHEMA".head SET index = h.index + 1, nonce = p_entry, epoch = p_epoch, clock = clock_timestamp(), checked_index = h.index, checked_hash = '';
  INSERT INTO "SCHEMA".entry (index, nonce, epoch, at, commands) VALUES (h.index + 1, p_entry, p_epoch, h.at, '\x00');
  IF p_channel <> '' THEN PERFORM pg_notify(p_channel, (h.index + 1)::text); END IF;
  RETURN QUERY SELECT h.index + 1, p_entry, p_epoch, h.at, '\x00'::bytea;
END
$leasehold$;