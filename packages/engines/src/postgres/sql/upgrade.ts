import { LEVEL_FLOOR } from '@leasehold/core'

/**
 * Tables of version 1 become those of version 2, in one statement and so in one transaction; does nothing to others. The
 * state and its sessions stay. A client of version 1 that is connected calls functions that are gone, and its call that waits for
 * this transaction finds no table of entries, which has another name: both fail instead of computing another state, and the
 * client finds the new version when it connects again. An entry of its own raises the feature level and the floor.
 */
export function upgradeSql(S: string): string {
  return `
DO $leasehold$
DECLARE
  s record;
  h record;
  raised bigint := ${S}.floor();
  entry bigint := ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint;
BEGIN
  IF to_regclass('${S}.entry') IS NULL OR to_regclass('${S}.head') IS NULL THEN RETURN; END IF;
  LOCK TABLE ${S}.head, ${S}.entry, ${S}.snapshot IN ACCESS EXCLUSIVE MODE;
  IF (SELECT d.version FROM ${S}.head d) <> 1 THEN RETURN; END IF;
  DROP FUNCTION IF EXISTS ${S}.append(bigint, bigint, bigint, bigint, bigint, bytea, boolean, text, bigint, text);
  DROP FUNCTION IF EXISTS ${S}.since(bigint, bigint);
  DROP FUNCTION IF EXISTS ${S}.compact(bigint, bigint, bytea);
  DROP FUNCTION IF EXISTS ${S}.raise_epoch(bigint, bigint, text);
  DROP FUNCTION IF EXISTS ${S}.timeline();
  ALTER TABLE ${S}.entry RENAME TO log;
  ALTER TABLE ${S}.log ADD COLUMN level integer, ADD COLUMN floor bigint;
  -- The log of version 1 begins with a state of level 1, whose counter starts at 0.
  ALTER TABLE ${S}.head ADD COLUMN first_level integer NOT NULL DEFAULT 1, ADD COLUMN first_floor bigint NOT NULL DEFAULT 0,
    ADD COLUMN system text, ADD COLUMN home oid NOT NULL DEFAULT '${S}.head'::regclass::oid, ADD COLUMN started timestamptz;
  ALTER TABLE ${S}.head ALTER COLUMN first_level DROP DEFAULT, ALTER COLUMN first_floor DROP DEFAULT, ALTER COLUMN home DROP DEFAULT;
  SELECT * INTO s FROM ${S}.server();
  UPDATE ${S}.head SET version = 2, index = index + 1, nonce = entry, timeline = coalesce(timeline, s.timeline), system = s.system,
    started = CASE WHEN raised IS NULL THEN NULL ELSE s.started END
    RETURNING * INTO h;
  INSERT INTO ${S}.log (index, nonce, epoch, at, commands, level, floor)
    VALUES (h.index, entry, h.epoch, h.at, '\\x00', ${LEVEL_FLOOR}, raised);
END
$leasehold$;`
}
