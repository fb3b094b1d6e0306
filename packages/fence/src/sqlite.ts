import { InvalidError } from '@leasehold/core'
import {
  bodyOf,
  type Fenced,
  type Guard,
  type GuardOptions,
  type OpenOptions,
  type Pruned,
  type PruneLocks,
} from './common/guard.js'
import type { GuardableHold } from './common/hold.js'
import { type Opening, openingOf } from './common/resource.js'
import { tracked } from './common/tracked.js'
import { columnSteps, type RowChange } from './sql/column.js'
import type { Dialect } from './sql/dialect.js'
import { openLockedSteps, openSteps } from './sql/open.js'
import { oldestLiveToken, PRUNE_BATCH_ROWS, pruneMarksSteps, raiseFloorSteps } from './sql/prune.js'
import { onlyTarget } from './sql/sql-guard.js'
import type { SqliteDatabase } from './sql/sqlite/client.js'
import { sqliteDialect } from './sql/sqlite/dialect.js'
import { explain } from './sql/sqlite/errors.js'
import { begin, commit, inTurn, isOpen, rollback, runner, unit } from './sql/sqlite/transaction.js'
import { runStepsSync } from './sql/steps.js'

export { MissingRowError } from './common/errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './common/guard.js'
export type { GuardableHold } from './common/hold.js'
export type { RowChange } from './sql/column.js'
export type { SqliteDatabase } from './sql/sqlite/client.js'

export interface SqliteGuardOptions extends GuardOptions {
  /** How long to wait for earlier transactions of the connection, and for writers of other connections. Default 5 000. */
  readonly busyTimeoutMs?: number
}

/** A guard of resources in SQLite: one mark per resource in the table `leasehold_guard`. */
export interface SqliteGuard<Db> extends Guard<Db> {
  /** Opens inside a transaction of yours (BEGIN IMMEDIATE); call it as its first statement. On an error, roll back. */
  enter<Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<Tx>>
  /** Like `enter`, for synchronous transaction functions such as `db.transaction(…).immediate`. */
  enterSync<Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Fenced<Tx>
  /** Raises the marks durably: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Deletes marks that no present hold needs, and rejects all tokens below that of the oldest present hold from then on.
   * `locks` must see all holds of the service: a client without a namespace and with full rights.
   */
  prune(locks: PruneLocks): Promise<Pruned>
  /** Like `prune`, with a floor that you know: no present hold has a lower token. */
  raiseFloor(floor: bigint): Promise<Pruned>
}

const BUSY_TIMEOUT_MS = 5_000

/**
 * A guard for SQLite. It needs the tables that `leasehold guard sql sqlite` prints. `with` runs BEGIN IMMEDIATE, so units of other
 * connections and processes run before or after it, never interleaved. A body that awaits keeps the connection's transaction
 * open: use that connection for nothing else, or pass a synchronous body.
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
    throw new InvalidError('the database does not report whether a transaction is open', {
      hint: 'node:sqlite reports it from Node 22.16 on',
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

  const raiseFloorOf = (floor: bigint) => inTurn(db, busyTimeoutMs, () => raiseFloor(db, dialect, busyTimeoutMs, floor))
  const enterSync = <Tx extends SqliteDatabase>(tx: Tx, hold: GuardableHold, open?: OpenOptions): Fenced<Tx> =>
    enter(tx, dialect, hold, openingOf(hold, options, open))

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
    prune: async (locks) => raiseFloorOf(await oldestLiveToken(locks)),
    raiseFloor: raiseFloorOf,
  }
}

/** Opens in a transaction of the caller. */
function enter<Tx extends SqliteDatabase>(tx: Tx, dialect: Dialect, hold: GuardableHold, opening: Opening): Fenced<Tx> {
  if (opening.readOnly) {
    throw new InvalidError('a shared hold can only read, and SQLite cannot make your transaction read-only', {
      code: 'mismatch',
      hint: 'use guard.with(hold, …)',
    })
  }
  if (!isOpen(tx)) {
    throw new InvalidError('a resource can only be opened inside a transaction, and none is open on this connection', {
      hint: 'BEGIN IMMEDIATE first',
    })
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

/** Raises the floor and deletes the marks below it, in one transaction. */
async function raiseFloor(db: SqliteDatabase, dialect: Dialect, busyTimeoutMs: number, floor: bigint): Promise<Pruned> {
  await begin(db, busyTimeoutMs, () => {})
  try {
    const raised = runStepsSync(raiseFloorSteps(dialect, floor), runner(db))
    let { deleted } = raised
    for (let batch = PRUNE_BATCH_ROWS; batch === PRUNE_BATCH_ROWS; deleted += batch) {
      batch = runStepsSync(pruneMarksSteps(dialect, raised.floor), runner(db))
    }
    commit(db)
    return { floor: raised.floor, deleted }
  } catch (error) {
    rollback(db)
    throw explain(error)
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement. Without `set` it opens the row: raises
 * its mark and returns it; do this before you compute from the row. Deleting a row deletes its mark.
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
