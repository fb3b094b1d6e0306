import { InvalidError } from '@leasehold/core'
import { OTHER_RESOURCE_STATE, STALE_STATE, UNFENCED_STATE } from './errors.js'
import { GUARD_TABLE, identifier, tableName } from '../names.js'

/**
 * Returns the SQL of triggers on a PostgreSQL table that reject every write whose transaction has not opened the row's resource
 * with its token. The database enforces this for every caller: psql, other languages and forgotten code included.
 */
export function pgTriggerSql(options: { table: string; resource: string; schema: string | undefined }): string {
  const table = tableName(options.table)
  const guard = tableName(GUARD_TABLE, options.schema)
  const check = tableName('leasehold_check', options.schema)
  const fenced = tableName(`leasehold_fenced_${options.table.replaceAll('.', '_')}`, options.schema)
  return `${checkSql(check, guard)}${fencedSql({ table, fenced, check, resource: options.resource })}`
}

/** The function that checks a resource in the running transaction. */
function checkSql(check: string, guard: string): string {
  return `
-- Refuses unless this transaction has opened the resource, and its mark is still the token that it was opened with.
CREATE OR REPLACE FUNCTION ${check}(p_resource text, p_table text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $leasehold$
DECLARE
  v_opened jsonb := nullif(current_setting('leasehold.resources', true), '')::jsonb;
  v_token bigint;
  v_mark bigint;
BEGIN
  IF nullif(current_setting('leasehold.token', true), '') IS NULL THEN
    RAISE EXCEPTION 'a write to % without a fencing token', p_table USING ERRCODE = '${UNFENCED_STATE}';
  END IF;
  IF v_opened IS NULL THEN
    v_token := current_setting('leasehold.token')::bigint;
  ELSE
    v_token := (v_opened ->> p_resource)::bigint;
  END IF;
  IF v_token IS NULL THEN
    RAISE EXCEPTION 'a write to % under a hold that does not cover the resource %', p_table, p_resource
      USING ERRCODE = '${OTHER_RESOURCE_STATE}';
  END IF;
  SELECT g.token INTO v_mark FROM ${guard} AS g WHERE g.resource = p_resource FOR UPDATE;
  IF v_mark > v_token THEN
    RAISE EXCEPTION 'stale token % for the resource %', v_token, p_resource USING ERRCODE = '${STALE_STATE}',
      DETAIL = json_build_object('resource', p_resource, 'token', v_token::text, 'mark', v_mark::text)::text,
      HINT = 'the hold is over and a later holder has opened the resource, or the lock service was founded again or restored with lower tokens';
  END IF;
  IF v_mark IS DISTINCT FROM v_token THEN
    RAISE EXCEPTION 'a write to % before the resource % was opened', p_table, p_resource
      USING ERRCODE = '${UNFENCED_STATE}';
  END IF;
END $leasehold$;
`
}

/** The triggers on the table, and the function that they call. */
function fencedSql(names: { table: string; fenced: string; check: string; resource: string }): string {
  const { table, fenced, check } = names
  const resourceOf = (row: 'OLD' | 'NEW') => rowResource(names.resource, row)
  return `
CREATE OR REPLACE FUNCTION ${fenced}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $leasehold$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'TRUNCATE of % goes around the guard', TG_TABLE_NAME USING ERRCODE = '${UNFENCED_STATE}';
  END IF;
  IF TG_OP <> 'INSERT' THEN
    PERFORM ${check}(${resourceOf('OLD')}, TG_TABLE_NAME);
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  PERFORM ${check}(${resourceOf('NEW')}, TG_TABLE_NAME);
  RETURN NEW;
END $leasehold$;
DROP TRIGGER IF EXISTS leasehold_fenced ON ${table};
CREATE TRIGGER leasehold_fenced BEFORE INSERT OR UPDATE OR DELETE ON ${table}
  FOR EACH ROW EXECUTE FUNCTION ${fenced}();
DROP TRIGGER IF EXISTS leasehold_fenced_truncate ON ${table};
CREATE TRIGGER leasehold_fenced_truncate BEFORE TRUNCATE ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION ${fenced}();
`
}

/** Converts a template such as `billing/{id}` to an expression over the columns of a row. */
function rowResource(template: string, row: 'OLD' | 'NEW'): string {
  const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== '')
  if (parts.length === 0) throw new InvalidError('a resource has at least one character')
  return parts
    .map((part) => {
      if (part.startsWith('{')) return `${row}.${identifier(part.slice(1, -1))}::text`
      if (/[{}]/.test(part) || part.includes('$leasehold$'))
        throw new InvalidError(`not a template of a resource: ${JSON.stringify(template)}`)
      return `'${part.replaceAll("'", "''")}'`
    })
    .join(' || ')
}
