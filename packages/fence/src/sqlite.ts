import { InvalidError, LeaseholdError, StorageError, UnavailableError } from '@leasehold/core'
import { bodyOf, type Fenced, type Guard, type GuardableHold, type GuardOptions, kindMismatch, type Mark, marksOf, type OpenOptions, rowOf, staleToken, track } from './hold.js'
import { oldestLiveToken, type PruneLocks } from './prune.js'

/** The part of a `better-sqlite3` or `libsql` database that a guard uses. */
export interface SqliteDatabase {
  prepare(sql: string): { get(...values: unknown[]): unknown; run(...values: unknown[]): unknown }
  exec(sql: string): unknown
  readonly inTransaction: boolean
}

export interface SqliteGuard<Tx extends SqliteDatabase> extends Guard<Tx> {
  /** Raises the floor to the oldest live token of the service and forgets the marks below. */
  prune(locks: PruneLocks): Promise<void>
}

const FLOOR = 'SELECT CAST(token AS TEXT) AS token FROM leasehold_guard_floor'
const KIND = "INSERT INTO leasehold_guard (resource, kind, token) VALUES (?, 'permits', 0) ON CONFLICT DO NOTHING"
const ROW = 'SELECT kind, CAST(token AS TEXT) AS token FROM leasehold_guard WHERE resource = ?'
const RAISE = `INSERT INTO leasehold_guard (resource, kind, token) VALUES (?, ?, CAST(? AS INTEGER))
  ON CONFLICT (resource) DO UPDATE SET token = excluded.token
  WHERE kind = excluded.kind AND token <= excluded.token RETURNING 1 AS raised`
const PRUNE = `DELETE FROM leasehold_guard WHERE token < CAST(? AS INTEGER) AND NOT (kind = 'permits' AND token = 0 AND EXISTS (
  SELECT 1 FROM leasehold_guard AS s WHERE substr(s.resource, 1, length(leasehold_guard.resource) + 1) = leasehold_guard.resource || '#'
  AND s.token >= CAST(? AS INTEGER)))`

/** Transactions of `with` on one connection go one after another: the connection has only one. */
const tails = new WeakMap<SqliteDatabase, Promise<unknown>>()

/**
 * A guard on SQLite: marks in the table that `leasehold guard sql sqlite` makes, in the same transaction as the data.
 * `with` runs BEGIN IMMEDIATE, so readers under a lock and writers of other processes never overlap. While an asynchronous
 * body runs, other code must not use the same connection.
 *
 * @example
 * const guard = fence(db)
 * await guard.with(hold, (tx) => tx.prepare('UPDATE invoice SET total = total + 7 WHERE id = ?').run(42))
 */
export function fence<Db extends SqliteDatabase>(db: Db, options: GuardOptions = {}): SqliteGuard<Db> {
  if (typeof db?.prepare !== 'function') throw new InvalidError('fence(db) takes a database of better-sqlite3 or libsql')
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const turn = (tails.get(db) ?? Promise.resolve()).then(run, run)
    tails.set(db, turn.then(() => undefined, () => undefined))
    return turn
  }
  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<Db>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<Db>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return track(hold, inTurn(() => transaction(db, hold, () => marksOf(hold, options, open), body)))
    },
    async enter(tx: Db, hold: GuardableHold, open: OpenOptions = {}): Promise<Fenced<Db>> {
      const marks = marksOf(hold, options, open)
      if (!tx.inTransaction) {
        throw new InvalidError('guard.enter outside a transaction protects nothing', { hint: 'BEGIN IMMEDIATE first' })
      }
      hold.assertHeld()
      raise(tx, marks)
      return tx as Fenced<Db>
    },
    async prune(locks: PruneLocks): Promise<void> {
      const floor = (await oldestLiveToken(locks)).toString()
      await inTurn(async () => {
        try {
          db.exec('BEGIN IMMEDIATE')
          db.prepare('UPDATE leasehold_guard_floor SET token = max(token, CAST(? AS INTEGER))').run(floor)
          db.prepare(PRUNE).run(floor, floor)
          db.exec('COMMIT')
        } catch (error) {
          if (db.inTransaction) db.exec('ROLLBACK')
          throw typedError(error)
        }
      })
    },
  }
}

async function transaction<Db extends SqliteDatabase, T>(
  db: Db,
  hold: GuardableHold,
  marks: () => readonly Mark[],
  body: (tx: Fenced<Db>) => T | Promise<T>,
): Promise<T> {
  const raised = marks()
  hold.assertHeld()
  if (db.inTransaction) throw new InvalidError('the connection is in a transaction already', { hint: 'use guard.enter in your own transaction' })
  const readOnly = raised.every((mark) => !mark.mayWrite)
  try {
    db.exec('BEGIN IMMEDIATE')
    raise(db, raised)
    if (readOnly) db.exec('PRAGMA query_only = ON')
    const result = body(db as Fenced<Db>)
    const value = isPromise(result) ? await result : result
    hold.assertHeld()
    if (readOnly) db.exec('PRAGMA query_only = OFF')
    db.exec('COMMIT')
    return value
  } catch (error) {
    if (readOnly) db.exec('PRAGMA query_only = OFF')
    if (db.inTransaction) db.exec('ROLLBACK')
    throw typedError(error)
  }
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null)?.then === 'function'
}

function raise(db: SqliteDatabase, marks: readonly Mark[]): void {
  for (const mark of marks) {
    const row = rowOf(mark)
    try {
      const floor = db.prepare(FLOOR).get() as { token: string } | undefined
      if (floor === undefined) throw new InvalidError('leasehold_guard_floor is empty: run the migration again')
      if (BigInt(floor.token) > mark.token) throw staleToken(row, mark.token, BigInt(floor.token))
      if (mark.kind === 'permits') {
        db.prepare(KIND).run(mark.resource)
        const bare = db.prepare(ROW).get(mark.resource) as { kind: string }
        if (bare.kind !== 'permits') throw kindMismatch(mark.resource, bare.kind, mark.kind)
      }
      const raised = db.prepare(RAISE).get(row, mark.kind, mark.token.toString())
      if (raised !== undefined && raised !== null) continue
      const known = db.prepare(ROW).get(row) as { kind: string; token: string }
      if (known.kind !== mark.kind) throw kindMismatch(mark.resource, known.kind, mark.kind)
      throw staleToken(row, mark.token, BigInt(known.token))
    } catch (error) {
      throw typedError(error)
    }
  }
}

function typedError(error: unknown): unknown {
  if (error instanceof LeaseholdError) return error
  const { code, message } = error as { code?: string; message?: string }
  const text = `${code ?? ''} ${message ?? ''}`
  if (/no such table:? (main\.)?leasehold_guard/.test(text)) {
    return new InvalidError("the guard's tables are missing", { cause: error, hint: 'run the migration: npx leasehold guard sql sqlite' })
  }
  if (/SQLITE_BUSY|database is locked/.test(text)) {
    return new UnavailableError('the database is busy: nothing was written', { cause: error, hint: 'set a busy timeout, and repeat' })
  }
  if (/SQLITE_FULL|disk is full/.test(text)) return new StorageError('the disk of the database is full: nothing was written', { cause: error })
  return error
}
