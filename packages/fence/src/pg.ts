import { AccessError, InvalidError, LeaseholdError, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type GuardableHold, type GuardOptions, kindMismatch, type Mark, marksOf, type OpenOptions, rowOf, staleToken, track } from './hold.js'
import { PG_MISMATCH, PG_STALE, PG_UNFENCED, quoteName, quoteTable, TOKEN_COLUMN } from './migrations.js'
import { oldestLiveToken, type PruneLocks } from './prune.js'

/** The part of a `pg` client or pool client that a guard uses. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null; command?: string }>
}

export interface PgPool {
  connect(): Promise<PgClient & { release(error?: Error | boolean): void }>
}

export interface PgGuardOptions extends GuardOptions {
  /** For `with`: default READ COMMITTED. Serialization failures are repeated in a fresh transaction, a few times. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
}

/** Attempts of `with` when PostgreSQL asks for a repeat (40001, 40P01). */
const ATTEMPTS_MAX = 10

export interface PgGuard<Tx extends PgClient> extends Guard<Tx> {
  /** Raises the floor to the oldest live token of the service and forgets the marks below; returns how many. */
  prune(locks: PruneLocks): Promise<number>
}

/**
 * A guard on PostgreSQL: marks in the table that `leasehold guard sql pg` makes, in the same transaction as the data.
 * Uses nothing of the session, so transaction poolers are safe.
 *
 * @example
 * const guard = fence(pool)
 * await guard.with(hold, async (tx) => {
 *   const { rows } = await tx.query('SELECT total FROM invoice WHERE id = $1', [42])
 *   await tx.query('UPDATE invoice SET total = $2 WHERE id = $1', [42, rows[0].total + 7])
 * })
 */
export function fence<P extends PgPool>(pool: P, options: PgGuardOptions = {}): PgGuard<Awaited<ReturnType<P['connect']>>> {
  type Tx = Awaited<ReturnType<P['connect']>>
  if (typeof pool?.connect !== 'function') throw new InvalidError('fence(pool) takes a pool of pg')
  const run = async <T>(hold: GuardableHold, open: OpenOptions, body: (tx: Fenced<Tx>) => T | Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(pool, hold, marksOf(hold, options, open), options, body as (tx: Fenced<PgClient>) => T | Promise<T>)
      } catch (error) {
        if (attempt >= ATTEMPTS_MAX || !wantsRepeat(error)) throw error
      }
    }
  }
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<Tx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<Tx>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return track(hold, run(hold, open, body))
    },
    async enter(tx: Tx, hold: GuardableHold, open: OpenOptions = {}): Promise<Fenced<Tx>> {
      const marks = marksOf(hold, options, open)
      hold.assertHeld()
      const entered = await raise(tx, marks)
      const { rows } = await tx.query('SELECT txid_current()::text AS id')
      if ((rows[0] as { id: string }).id !== entered) {
        throw new InvalidError('guard.enter ran outside a transaction: the mark is raised, but protects nothing', {
          hint: 'BEGIN first, and pass the client that runs the transaction (not the pool)',
        })
      }
      return tx as Fenced<Tx>
    },
    async prune(locks: PruneLocks): Promise<number> {
      const floor = await oldestLiveToken(locks)
      const client = await connect(pool)
      try {
        const { rows } = await client.query('SELECT leasehold_prune($1::bigint)::text AS deleted', [floor.toString()])
        return Number((rows[0] as { deleted: string }).deleted)
      } catch (error) {
        throw typedError(error, [])
      } finally {
        client.release()
      }
    },
  }
}

async function connect(pool: PgPool): Promise<PgClient & { release(error?: Error | boolean): void }> {
  try {
    return await pool.connect()
  } catch (error) {
    throw typedError(error, [])
  }
}

/** One transaction: begin, raise, body, commit. Whatever fails before the commit is rolled back. */
async function once<T>(
  pool: PgPool,
  hold: GuardableHold,
  marks: readonly Mark[],
  options: PgGuardOptions,
  body: (tx: Fenced<PgClient>) => T | Promise<T>,
): Promise<T> {
  hold.assertHeld()
  const client = await connect(pool)
  let broken: Error | undefined
  try {
    const isolation = options.isolation ?? 'read committed'
    let value: T
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`)
      await raise(client, marks)
      value = await body(client as unknown as Fenced<PgClient>)
      hold.assertHeld()
    } catch (error) {
      broken = await rollBack(client, error)
      throw typedError(error, marks)
    }
    broken = await commit(client, marks)
    return value
  } finally {
    client.release(broken)
  }
}

/** Rolls back; an error here means that the connection is of no more use. */
async function rollBack(client: PgClient, cause: unknown): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK')
    return undefined
  } catch (error) {
    return new Error('the connection broke in a transaction', { cause: new AggregateError([cause, error]) })
  }
}

async function commit(client: PgClient, marks: readonly Mark[]): Promise<undefined> {
  let result: { command?: string }
  try {
    result = await client.query('COMMIT')
  } catch (error) {
    if (sqlState(error) !== undefined && !isConnectionState(sqlState(error))) throw typedError(error, marks)
    throw new UnknownOutcomeError('the answer to COMMIT is lost: the transaction may or may not have taken effect', {
      cause: error,
      hint: 'give the unit up, or repeat it under a new hold',
    })
  }
  if (result.command === 'ROLLBACK') {
    throw new InvalidError('the transaction had failed and was rolled back: an error inside it was swallowed')
  }
  return undefined
}

/** Raises all marks, in one statement each; a refused one makes the whole transaction fail, even if its error is swallowed. */
async function raise(client: PgClient, marks: readonly Mark[]): Promise<string> {
  let id = ''
  try {
    for (const mark of marks) {
      const values = [mark.resource, mark.kind, mark.slot ?? null, mark.token.toString()]
      const { rows } = await client.query('SELECT leasehold_enter($1, $2, $3, $4::bigint) AS id', values)
      id = (rows[0] as { id: string }).id
    }
    if (marks.every((mark) => !mark.mayWrite)) await client.query('SET TRANSACTION READ ONLY')
  } catch (error) {
    throw typedError(error, marks)
  }
  return id
}

// --- the column form: a mark on each row ---

export interface RowChange {
  readonly table: string
  /** Column → value that finds the row. */
  readonly where: Readonly<Record<string, unknown>>
  /** Column → new value. Empty: only raise the row's mark. */
  readonly set: Readonly<Record<string, unknown>>
}

/**
 * Updates one row under its own mark (the form `column`): accepted if the row's mark is not above the hold's token.
 * With an empty `set` it opens the row, and the row is returned either way.
 * @throws StaleTokenError, InvalidError if there is no such row
 */
export async function fencedUpdate(client: PgClient, hold: GuardableHold, change: RowChange, open: OpenOptions = {}): Promise<Record<string, unknown>> {
  const [mark] = marksOf(hold, { resource: () => `${change.table}:${JSON.stringify(change.where)}` }, open) as [Mark]
  if (!mark.mayWrite) throw new InvalidError('a shared hold may not write', { code: 'mismatch' })
  hold.assertHeld()
  const values: unknown[] = [mark.token.toString()]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = Object.entries(change.where).map(([column, value]) => `${quoteName(column)} = ${bind(value)}`)
  const keys = [...values]
  const set = Object.entries(change.set).map(([column, value]) => `, ${quoteName(column)} = ${bind(value)}`)
  if (where.length === 0) throw new InvalidError('a fenced update finds its row by at least one column')
  const table = quoteTable(change.table)
  const condition = where.join(' AND ')
  try {
    const { rows } = await client.query(
      `UPDATE ${table} SET ${TOKEN_COLUMN} = $1::bigint${set.join('')} WHERE ${condition} AND ${TOKEN_COLUMN} <= $1::bigint RETURNING *`,
      values,
    )
    if (rows.length > 1) throw new InvalidError(`a fenced update found ${rows.length} rows, not one`, { hint: 'find the row by its key, and roll back' })
    if (rows[0] !== undefined) return rows[0] as Record<string, unknown>
    const seenSql = `SELECT ${TOKEN_COLUMN}::text AS mark FROM ${table} WHERE ${condition} AND $1::bigint IS NOT NULL`
    const found = await client.query(seenSql, keys)
    const seen = (found.rows[0] as { mark: string } | undefined)?.mark
    if (seen === undefined) throw new InvalidError(`no row of ${change.table} for ${JSON.stringify(change.where)}`, { code: 'mismatch' })
    throw staleToken(mark.resource, mark.token, BigInt(seen))
  } catch (error) {
    throw typedError(error, [mark])
  }
}

// --- errors ---

function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Class 08 (connection), and the server's own shutdown. */
function isConnectionState(state: string | undefined): boolean {
  return state !== undefined && (state.startsWith('08') || state === '57P01' || state === '57P02' || state === '57P03')
}

function wantsRepeat(error: unknown): boolean {
  const state = sqlState(error) ?? sqlState((error as { cause?: unknown } | null)?.cause)
  return state === '40001' || state === '40P01'
}

/** What went wrong, in Leasehold's words where they apply; errors of the caller's own statements pass as they are. */
function typedError(error: unknown, marks: readonly Mark[]): unknown {
  if (error instanceof LeaseholdError) return error
  const state = sqlState(error)
  const { detail, message } = error as { detail?: string; message?: string }
  const mark = marks.find((one) => message?.endsWith(` for ${rowOf(one)}`)) ?? marks[0]
  if (state === PG_STALE) {
    return staleToken(mark === undefined ? '' : rowOf(mark), mark?.token ?? 0n, detail === undefined ? undefined : BigInt(detail), error)
  }
  if (state === PG_MISMATCH) return kindMismatch(mark?.resource ?? '', detail ?? '', mark?.kind ?? '', error)
  if (state === PG_UNFENCED) {
    return new InvalidError(message ?? 'write without a fencing token', { cause: error, hint: 'open the guard first: guard.with or guard.enter' })
  }
  if (state === '42883' || state === '42P01') {
    if (/leasehold_/.test(message ?? '')) return new InvalidError("the guard's tables are missing", { cause: error, hint: 'run the migration: npx leasehold guard sql pg' })
    return error
  }
  if (state === '28P01' || state === '28000') return new AccessError('PostgreSQL refuses the user or the password', { cause: error })
  if (isConnectionState(state) || isNetworkError(error)) {
    return new UnavailableError('the connection to PostgreSQL is lost: nothing was written', { cause: error })
  }
  return error
}

function isNetworkError(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  if (code !== undefined && /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_)/.test(code)) return true
  return /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/.test(message ?? '')
}
