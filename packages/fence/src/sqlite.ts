import {
  InvalidError,
  LeaseholdError,
  LimitError,
  StorageError,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import {
  bodyOf,
  type Fenced,
  type Guard,
  type GuardOptions,
  type OpenOptions,
  type Pruned,
  type PruneLocks,
} from './common/guard.js'
import { type GuardableHold, tracked } from './common/hold.js'
import { onlyReads, type Opening, openingOf } from './common/resource.js'
import { columnSteps, type RowChange } from './sql/column.js'
import { sqliteDialect } from './sql/sqlite/dialect.js'
import { notSetUp } from './sql/errors.js'
import { onlyTarget } from './sql/sql-guard.js'
import { endedInside, openLockedSteps, openSteps } from './sql/open.js'
import { oldestLiveToken, PRUNE_BATCH_ROWS, pruneMarksSteps, raiseFloorSteps } from './sql/prune.js'
import { bound, type Statement } from './sql/statement.js'
import { type Row, runStepsSync, type Steps } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { RowChange } from './sql/column.js'

/** What a guard uses of a database of `better-sqlite3`, `libsql`, or `node:sqlite` (Node 22.16 and later). */
export interface SqliteDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- each driver has its own type of what can be bound
  prepare(sql: string): { all(...values: any[]): unknown[] }
  exec(sql: string): unknown
  /** Whether a transaction is open: `better-sqlite3` and `libsql`. */
  readonly inTransaction?: boolean
  /** The same of `node:sqlite`. */
  readonly isTransaction?: boolean
}

export interface SqliteGuardOptions extends GuardOptions {
  /** How long to wait for the connection's own transactions, and for writers of other connections. Default 5 000. */
  readonly busyTimeoutMs?: number
}

/** A guard of resources in SQLite: one mark per resource in the table `leasehold_guard`. */
export interface SqliteGuard<Db> extends Guard<Db> {
  /** Opens inside a transaction of yours (BEGIN IMMEDIATE); call it as its first statement. On an error, roll back. */
  enter<Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<Tx>>
  /** The same at once, for synchronous transaction functions such as `db.transaction(…).immediate`. */
  enterSync<Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Fenced<Tx>
  /** Only raises the marks, durably: writes of earlier holds are refused from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Deletes marks that no living hold needs, and refuses all tokens below the oldest living one from then on.
   * `locks` must see all holds of the service: a client without a namespace and with full rights.
   */
  prune(locks: PruneLocks): Promise<Pruned>
  /** As `prune`, with a floor that you know: no hold with a lower token lives. */
  raiseFloor(floor: bigint): Promise<Pruned>
}

const BUSY_TIMEOUT_MS = 5_000
const BUSY_PAUSE_MS = 5

/** A connection has one transaction at a time: those of guards go one after another. */
const tails = new WeakMap<SqliteDatabase, Promise<void>>()

/**
 * A guard on SQLite. Needs the tables that `leasehold guard sql sqlite` prints. `with` runs BEGIN IMMEDIATE, so units of
 * other connections and processes go before or after, never between. A body that awaits keeps the connection's transaction
 * open meanwhile: let nobody else use that connection, or give a synchronous body.
 *
 * @example
 * const guard = fence(new Database('shop.sqlite'))
 * await guard.with(hold, (tx) => tx.prepare('UPDATE invoice SET total = total + 7 WHERE id = ?').run(42))
 */
export function fence<Db extends SqliteDatabase>(db: Db, options: SqliteGuardOptions = {}): SqliteGuard<Db> {
  if (typeof db?.prepare !== 'function' || typeof db.exec !== 'function') {
    throw new InvalidError('a guard for SQLite takes a database of better-sqlite3, libsql or node:sqlite')
  }
  if (typeof (db.inTransaction ?? db.isTransaction) !== 'boolean') {
    throw new InvalidError('the database does not say whether a transaction is open', {
      hint: 'node:sqlite tells it from Node 22.16 on',
    })
  }
  const { busyTimeoutMs = BUSY_TIMEOUT_MS } = options
  if (!Number.isSafeInteger(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new InvalidError(`busyTimeoutMs is a whole number of milliseconds, not ${busyTimeoutMs}`)
  }
  const dialect = sqliteDialect(options.schema)

  const guarded = <T>(hold: GuardableHold, open: OpenOptions, body: (tx: Db) => T | Promise<T>): Promise<T> =>
    tracked(hold, async () => {
      const opening = openingOf(hold, options, open)
      hold.assertHeld()
      return await inTurn(db, busyTimeoutMs, () =>
        unit({ db, hold, opening, busyTimeoutMs, steps: openLockedSteps(dialect, opening), body }),
      )
    })

  const raiseFloor = (floor: bigint): Promise<Pruned> =>
    inTurn(db, busyTimeoutMs, async () => {
      await begin(db, busyTimeoutMs, () => {})
      try {
        const raised = runStepsSync(raiseFloorSteps(dialect, floor), runner(db))
        let deleted = raised.deleted
        for (let batch = PRUNE_BATCH_ROWS; batch === PRUNE_BATCH_ROWS; deleted += batch) {
          batch = runStepsSync(pruneMarksSteps(dialect, raised.floor), runner(db))
        }
        commit(db)
        return { floor: raised.floor, deleted }
      } catch (error) {
        rollback(db)
        throw explain(error)
      }
    })

  const enterSync = <Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, open?: OpenOptions): Fenced<Tx> => {
    const opening = openingOf(hold, options, open)
    if (opening.readOnly) {
      throw new InvalidError('a shared hold can only read, and SQLite cannot hold a transaction of yours to that', {
        code: 'mismatch',
        hint: 'use guard.with(hold, …)',
      })
    }
    if (!isOpen(tx)) {
      throw new InvalidError(
        'a resource can only be opened inside a transaction, and none is open on this connection',
        {
          hint: 'BEGIN IMMEDIATE first',
        },
      )
    }
    hold.assertHeld()
    try {
      runStepsSync(openSteps(dialect, opening), runner(tx))
    } catch (error) {
      rollback(tx)
      throw explain(error)
    }
    return tx as Fenced<Tx>
  }

  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<Db>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<Db>) => T | Promise<T>,
    ): Promise<T> {
      const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
      return guarded(hold, open, (tx) => body(tx as Fenced<Db>))
    },
    enter: async (tx, hold, open) => enterSync(tx, hold, open),
    enterSync,
    open: (hold, open = {}) => guarded(hold, open, () => {}),
    prune: async (locks) => raiseFloor(await oldestLiveToken(locks)),
    raiseFloor,
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement. Without `set` it opens the row: raises
 * its mark and returns it; do this before you compute from it. Deleting a row deletes its mark.
 * @throws StaleTokenError, MissingRowError, HoldLostError, InvalidError
 */
export function fencedUpdate(
  db: SqliteDatabase,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions = {},
): Record<string, unknown> {
  const target = onlyTarget(openingOf(hold, { resource: (_hold, lock) => lock }, options))
  hold.assertHeld()
  try {
    return runStepsSync(columnSteps(sqliteDialect(), target, change), runner(db)) as Record<string, unknown>
  } catch (error) {
    throw explain(error)
  }
}

/** Waits for the connection's turn, for a limited time, and runs. */
async function inTurn<T>(db: SqliteDatabase, timeoutMs: number, run: () => Promise<T>): Promise<T> {
  const before = tails.get(db) ?? Promise.resolve()
  let done: () => void = () => {}
  const mine = new Promise<void>((resolve) => {
    done = resolve
  })
  tails.set(
    db,
    Promise.all([before, mine]).then(() => {}),
  )
  try {
    await withTimeout(before, timeoutMs)
    return await run()
  } finally {
    done()
  }
}

async function withTimeout(turn: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const hint = 'a guarded unit inside another one on the same connection waits for itself: give each a connection'
      reject(new LimitError(`the connection's transaction was busy for ${timeoutMs} ms`, { hint }))
    }, timeoutMs)
  })
  try {
    await Promise.race([turn, late])
  } finally {
    clearTimeout(timer)
  }
}

const SAVEPOINT = 'leasehold_unit'

interface Unit<Db, T> {
  readonly db: Db
  readonly hold: GuardableHold
  readonly opening: Opening
  readonly busyTimeoutMs: number
  readonly steps: Steps<void>
  readonly body: (tx: Db) => T | Promise<T>
}

async function unit<Db extends SqliteDatabase, T>({
  db,
  hold,
  opening,
  busyTimeoutMs,
  steps,
  body,
}: Unit<Db, T>): Promise<T> {
  await begin(db, busyTimeoutMs, () => hold.assertHeld())
  try {
    runStepsSync(steps, runner(db))
    // It is gone when the body has ended the transaction, whether or not it has begun another one.
    db.exec(`SAVEPOINT ${SAVEPOINT}`)
    if (opening.readOnly) db.exec('PRAGMA query_only = ON')
    const result = body(db)
    const value = isPromise(result) ? await result : result
    checkInside(db)
    hold.assertHeld()
    commit(db)
    return value
  } catch (error) {
    rollback(db)
    throw opening.readOnly && codeOf(error).startsWith('SQLITE_READONLY') ? onlyReads(error) : explain(error)
  } finally {
    if (opening.readOnly) db.exec('PRAGMA query_only = OFF')
  }
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** BEGIN IMMEDIATE, repeated for a while when another connection writes. `check` runs right before each attempt. */
async function begin(db: SqliteDatabase, timeoutMs: number, check: () => void): Promise<void> {
  for (const end = performance.now() + timeoutMs; ; ) {
    check()
    if (isOpen(db)) {
      throw new InvalidError('the connection is in a transaction already', {
        hint: 'use guard.enter in a transaction of yours',
      })
    }
    try {
      db.exec('BEGIN IMMEDIATE')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw explain(error)
    }
    await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS * (0.5 + Math.random())))
  }
}

function commit(db: SqliteDatabase): void {
  try {
    db.exec('COMMIT')
  } catch (error) {
    if (!codeOf(error).startsWith('SQLITE_IOERR')) throw error
    throw new UnknownOutcomeError('the commit failed at the disk: it may or may not have taken effect', {
      cause: error,
    })
  }
}

function isOpen(db: SqliteDatabase): boolean {
  return db.inTransaction ?? db.isTransaction ?? false
}

function checkInside(db: SqliteDatabase): void {
  try {
    db.exec(`RELEASE ${SAVEPOINT}`)
  } catch (error) {
    throw endedInside(error)
  }
}

function rollback(db: SqliteDatabase): void {
  if (isOpen(db)) db.exec('ROLLBACK')
}

function runner(db: SqliteDatabase): (statement: Statement) => readonly Row[] {
  return (statement) => db.prepare(bound(statement, () => '?')).all(...statement.values) as Row[]
}

/** Result codes of SQLite that mean something here, by their number, which is all that node:sqlite tells. */
const RESULT_CODES: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  13: 'SQLITE_FULL',
}

function codeOf(error: unknown): string {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  // The low byte is the code, the rest says more about it.
  if (typeof errcode === 'number') return RESULT_CODES[errcode & 0xff] ?? ''
  return typeof code === 'string' ? code : ''
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

function explain(error: unknown): unknown {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (/no such (table|column):.*leasehold_/.test(message)) {
    return notSetUp('sqlite', message, error)
  }
  if (isBusy(error)) {
    return new UnavailableError(`another connection is writing: ${message}`, {
      cause: error,
      hint: 'nothing was written; try again',
    })
  }
  if (codeOf(error).startsWith('SQLITE_FULL')) {
    return new StorageError(`the disk of the database is full: ${message}`, {
      cause: error,
      hint: 'nothing was written',
    })
  }
  return error
}
