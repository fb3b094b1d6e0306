import { InvalidError, LimitError, UnknownOutcomeError } from '@leasehold/core'
import type { GuardableHold } from '../../common/hold.js'
import { onlyReads, type Opening } from '../../common/resource.js'
import { endedInside } from '../open.js'
import { bound, type Statement } from '../statement.js'
import { type Row, runStepsSync, type Steps } from '../steps.js'
import type { SqliteDatabase } from './client.js'
import { codeOf, explain, isBusy } from './errors.js'

const BUSY_PAUSE_MS = 5

/** The last transaction of each connection. A connection has one transaction at a time, so those of guards are queued. */
const tails = new WeakMap<SqliteDatabase, Promise<void>>()

/** Waits until the connection's earlier transactions have ended, for a limited time, then runs. @throws LimitError */
export async function inTurn<T>(db: SqliteDatabase, timeoutMs: number, run: () => Promise<T>): Promise<T> {
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

export interface Unit<Db, T> {
  readonly db: Db
  readonly hold: GuardableHold
  readonly opening: Opening
  readonly busyTimeoutMs: number
  readonly steps: Steps<void>
  readonly body: (tx: Db) => T | Promise<T>
}

/** Runs one transaction of the guard: begins, runs the opening `steps`, runs `body`, commits. */
export async function unit<Db extends SqliteDatabase, T>({
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
    // The savepoint vanishes if the body ends the transaction, even if it begins another one.
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

/** Runs BEGIN IMMEDIATE, with retries while another connection writes. `check` runs right before each attempt. */
export async function begin(db: SqliteDatabase, timeoutMs: number, check: () => void): Promise<void> {
  for (const end = performance.now() + timeoutMs; ; ) {
    check()
    if (isOpen(db)) {
      throw new InvalidError('the connection has an open transaction already', {
        hint: 'use guard.enter in your own transaction',
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

export function commit(db: SqliteDatabase): void {
  try {
    db.exec('COMMIT')
  } catch (error) {
    if (!codeOf(error).startsWith('SQLITE_IOERR')) throw error
    throw new UnknownOutcomeError('the commit failed at the disk: it may or may not have taken effect', {
      cause: error,
    })
  }
}

export function isOpen(db: SqliteDatabase): boolean {
  return db.inTransaction ?? db.isTransaction ?? false
}

function checkInside(db: SqliteDatabase): void {
  try {
    db.exec(`RELEASE ${SAVEPOINT}`)
  } catch (error) {
    throw endedInside(error)
  }
}

export function rollback(db: SqliteDatabase): void {
  if (isOpen(db)) db.exec('ROLLBACK')
}

/** Returns a function that runs statements on a database. */
export function runner(db: SqliteDatabase): (statement: Statement) => readonly Row[] {
  return (statement) => db.prepare(bound(statement, () => '?')).all(...statement.values) as Row[]
}
