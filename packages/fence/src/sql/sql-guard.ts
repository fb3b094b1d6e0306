import { InvalidError } from '@leasehold/core'
import {
  bodyOf,
  type Fenced,
  type Guard,
  type GuardOptions,
  type OpenOptions,
  type Pruned,
  type PruneLocks,
} from '../common/guard.js'
import type { GuardableHold } from '../common/hold.js'
import { tracked } from '../common/tracked.js'
import { type Opening, openingOf, type Target } from '../common/resource.js'
import { columnSteps, type RowChange } from './column.js'
import type { Dialect } from './dialect.js'
import { openSteps } from './open.js'
import { oldestLiveToken, PRUNE_BATCH_ROWS, pruneMarksSteps, raiseFloorSteps } from './prune.js'
import { type Row, runSteps, type Steps } from './steps.js'
import type { Statement } from './statement.js'

export interface SqlGuardOptions extends GuardOptions {
  /** How often a transaction is attempted in all after serialization failures and deadlocks. Default 10. */
  readonly attempts?: number
}

/** A guard of resources in a SQL database: one mark per resource in the table `leasehold_guard`. */
export interface SqlGuard<Client, AnyTx> extends Guard<Client> {
  /**
   * Opens inside a transaction of yours; call it as its first statement. If it rejects, the transaction can only be rolled back.
   * `release()` does not wait for your transaction: release after it has ended.
   */
  enter<Tx extends AnyTx>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<Tx>>
  /** Raises the marks durably: writes of earlier holds are rejected from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Deletes marks that no present hold needs, and rejects all tokens below that of the oldest present hold from then on.
   * `locks` must see all holds of the service: a client without a namespace and with full rights. A guard table belongs to one
   * lock service.
   */
  prune(locks: PruneLocks): Promise<Pruned>
  /** Like `prune`, with a floor that you know: no present hold has a lower token. */
  raiseFloor(floor: bigint): Promise<Pruned>
}

/** What the SQL guard needs of an asynchronous driver. */
export interface SqlDriver<Tx> {
  readonly dialect: Dialect
  run(tx: Tx, statement: Statement): Promise<readonly Row[]>
  /**
   * Runs one transaction of the guard's own: begins, opens, runs `body`, commits. `check` runs right before the transaction
   * begins and right before it commits. A lost connection is UnavailableError before the commit is sent, and
   * UnknownOutcomeError afterwards.
   */
  unit<T>(opening: Opening, check: () => void, body: (tx: Tx) => T | Promise<T>): Promise<T>
  /** Runs a transaction of `prune`. With `alone` it blocks checks, and waits for running ones for at most {@link PRUNE_LOCK_TIMEOUT_MS}. */
  maintain<T>(alone: boolean, steps: () => Steps<T>): Promise<T>
  /** Makes the caller's transaction fail even if the caller swallows the rejection. */
  poison(tx: Tx): Promise<void>
  isRetryable(error: unknown): boolean
  /** Maps errors of the driver to typed errors. Others pass unchanged. */
  explain(error: unknown, opening?: Opening): unknown
}

/** How long `prune` waits for running units. New ones queue behind it. */
export const PRUNE_LOCK_TIMEOUT_MS = 1_000
const ATTEMPTS_DEFAULT = 10
const ATTEMPTS_MAX = 100
const BACKOFF_FIRST_MS = 2
const BACKOFF_MAX_MS = 200

export function sqlGuard<Tx extends AnyTx, AnyTx>(
  driver: SqlDriver<Tx>,
  options: SqlGuardOptions,
): SqlGuard<Tx, AnyTx> {
  const attempts = checkedAttempts(options.attempts)

  const guarded = async <T>(hold: GuardableHold, open: OpenOptions, body: (tx: Tx) => Promise<T> | T) => {
    const opening = openingOf(hold, options, open)
    const check = () => hold.assertHeld()
    check()
    try {
      return await withRetries(attempts, driver.isRetryable, () => driver.unit(opening, check, body))
    } catch (error) {
      throw driver.explain(error, opening)
    }
  }

  const raiseFloor = async (floor: bigint): Promise<Pruned> => {
    try {
      const raised = await driver.maintain(true, () => raiseFloorSteps(driver.dialect, floor))
      let { deleted } = raised
      for (let batch = PRUNE_BATCH_ROWS; batch === PRUNE_BATCH_ROWS; deleted += batch) {
        batch = await driver.maintain(false, () => pruneMarksSteps(driver.dialect, raised.floor))
      }
      return { floor: raised.floor, deleted }
    } catch (error) {
      throw driver.explain(error)
    }
  }

  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<Tx>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<Tx>) => T | Promise<T>,
    ): Promise<T> {
      return tracked(hold, async () => {
        const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
        return await guarded(hold, open, (tx) => body(tx as Fenced<Tx>))
      })
    },
    enter: (tx, hold, open) => enterWith(driver as unknown as SqlDriver<typeof tx>, options, tx, hold, open),
    open: (hold, open = {}) => tracked(hold, () => guarded(hold, open, () => {})),
    prune: async (locks) => raiseFloor(await oldestLiveToken(locks)),
    raiseFloor,
  }
}

/** What `enter` needs of a driver, or of a mapper on top of one. */
export type EnterDriver<Tx> = Pick<SqlDriver<Tx>, 'dialect' | 'run' | 'poison' | 'explain'>

/** Opens inside a transaction of the caller. */
export async function enterWith<Tx>(
  driver: EnterDriver<Tx>,
  options: GuardOptions,
  tx: Tx,
  hold: GuardableHold,
  open: OpenOptions | undefined,
): Promise<Fenced<Tx>> {
  const opening = openingOf(hold, options, open)
  if (opening.readOnly && driver.dialect.readOnly === undefined) {
    throw new InvalidError('a shared hold can only read, and this database cannot make your transaction read-only', {
      code: 'mismatch',
      hint: 'use guard.with(hold, …)',
    })
  }
  hold.assertHeld()
  try {
    await runSteps(openSteps(driver.dialect, opening), (statement) => driver.run(tx, statement))
  } catch (error) {
    await driver.poison(tx)
    throw driver.explain(error, opening)
  }
  return tx as Fenced<Tx>
}

/** A shared hold needs a transaction that the database keeps from writing. @throws InvalidError */
export function assertCanRead(dialect: Dialect, opening: Opening): void {
  if (!opening.readOnly || dialect.readOnly !== undefined) return
  throw new InvalidError('a shared hold can only read, and this database cannot make your transaction read-only', {
    code: 'mismatch',
    hint: "use guard.with(hold, …) of the database's own guard",
  })
}

/** The column form over an asynchronous driver. `lost` returns the error for a write whose answer is lost. */
export function fencedUpdateWith<Tx>(
  driver: Pick<SqlDriver<Tx>, 'dialect' | 'run' | 'explain'> & { lost(error: unknown): Error | undefined },
  tx: Tx,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions,
): Promise<Record<string, unknown> | undefined> {
  return tracked(hold, async () => {
    const opening = openingOf(hold, { resource: (_hold, lock) => lock }, options)
    const target = onlyTarget(opening)
    hold.assertHeld()
    try {
      return await runSteps(columnSteps(driver.dialect, target, change), (statement) => driver.run(tx, statement))
    } catch (error) {
      throw (change.set === undefined ? undefined : driver.lost(error)) ?? driver.explain(error, opening)
    }
  })
}

export function onlyTarget({ targets }: Opening): Target {
  const [target, ...more] = targets as [Target, ...Target[]]
  if (more.length > 0)
    throw new InvalidError('a hold of several locks: which one protects this row?', { hint: 'pass { lock }' })
  return target
}

function checkedAttempts(attempts = ATTEMPTS_DEFAULT): number {
  if (Number.isSafeInteger(attempts) && attempts >= 1 && attempts <= ATTEMPTS_MAX) return attempts
  throw new InvalidError(`attempts is a number from 1 to ${ATTEMPTS_MAX}, not ${attempts}`)
}

/** Retries transactions that the server asks to retry, a bounded number of times. */
export async function withRetries<T>(
  attempts: number | undefined,
  isRetryable: (error: unknown) => boolean,
  attempt: () => Promise<T>,
): Promise<T> {
  const most = checkedAttempts(attempts)
  for (let count = 1; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      if (count >= most || !isRetryable(error)) throw error
      await backoff(count)
    }
  }
}

/** A random pause that grows with the attempts, so that two transactions do not meet again at the same point. */
function backoff(attempt: number): Promise<void> {
  const most = Math.min(BACKOFF_FIRST_MS * 2 ** attempt, BACKOFF_MAX_MS)
  return new Promise((resolve) => setTimeout(resolve, Math.random() * most))
}
