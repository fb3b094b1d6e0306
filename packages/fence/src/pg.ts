import { InvalidError } from '@leasehold/core'
import {
  bodyOf,
  type Fenced,
  type Guard,
  type GuardOptions,
  type OpenOptions,
  type Pruned,
  type PruneLocks,
} from './guard.js'
import { type GuardableHold, tracked } from './hold.js'
import { explain, isAnswerLost, isRetryable } from './pg-errors.js'
import { type PgClient, type PgPool, type PgQueries, transaction, unknownOutcome } from './pg-transaction.js'
import { openingOf, type Target } from './resource.js'
import { columnSteps, type RowChange } from './sql/column.js'
import { pgDialect } from './sql/dialect.js'
import { openLockedSteps, openSteps } from './sql/open.js'
import { oldestLiveToken, PRUNE_BATCH_ROWS, pruneMarksSteps, raiseFloorSteps } from './sql/prune.js'
import { type Row, runSteps, type Statement } from './sql/steps.js'

export { MissingRowError } from './errors.js'
export type { Fenced, Guard, GuardOptions, OpenOptions, Pruned, PruneLocks } from './guard.js'
export type { GuardableHold } from './hold.js'
export type { PgClient, PgPool, PgQueries, PgResult } from './pg-transaction.js'
export type { RowChange } from './sql/column.js'

/** The client type of a pool: `PoolClient` of pg's `Pool`. */
export type ClientOf<P> = P extends { connect: { (): Promise<infer C>; (...more: infer _A): infer _R } }
  ? C
  : P extends { connect: () => Promise<infer C> }
    ? C
    : PgClient

export interface PgGuardOptions extends GuardOptions {
  /** Default: the server's, READ COMMITTED unless it was changed. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable'
  /** How often a transaction is begun in all when the server asks to repeat it (40001, 40P01). Default 10. */
  readonly attempts?: number
}

/** A guard of resources in PostgreSQL: one mark per resource in the table `leasehold_guard`. */
export interface PgGuard<Client> extends Guard<Client> {
  /**
   * Opens inside a transaction of yours; call it as its first statement. When it refuses, that transaction can only be
   * rolled back. `release()` does not know of your transaction: release after its end.
   */
  enter<Tx extends PgQueries>(tx: Tx, hold: GuardableHold, options?: OpenOptions): Promise<Fenced<Tx>>
  /** Only raises the marks, durably: writes of earlier holds are refused from now on. */
  open(hold: GuardableHold, options?: OpenOptions): Promise<void>
  /**
   * Deletes marks that no living hold needs, and refuses all tokens below the oldest living one from then on.
   * `locks` must see all holds of the service: a client without a namespace and with full rights. One guard table belongs
   * to one lock service.
   */
  prune(locks: PruneLocks): Promise<Pruned>
  /** As `prune`, with a floor that you know: no hold with a lower token lives. */
  raiseFloor(floor: bigint): Promise<Pruned>
}

const ATTEMPTS_DEFAULT = 10
const ATTEMPTS_MAX = 100
const BACKOFF_FIRST_MS = 2
const BACKOFF_MAX_MS = 200
/** How long `prune` waits for running units; new ones wait behind it meanwhile. */
const PRUNE_LOCK_TIMEOUT_MS = 1_000
const ISOLATIONS = ['read committed', 'repeatable read', 'serializable']

/**
 * A guard over a pool of `pg`. Needs the tables that `leasehold guard sql pg` prints. Nothing depends on the session, so it
 * works behind transaction poolers.
 *
 * `with` begins the whole transaction anew when the server reports a serialization failure or a deadlock, so its body may
 * run several times: keep effects outside the database out of it. With a shared hold the transaction can only read.
 *
 * @example
 * const guard = fence(new Pool())
 * await guard.with(hold, async (tx) => {
 *   const { rows } = await tx.query('SELECT total FROM invoice WHERE id = $1', [42])
 *   await tx.query('UPDATE invoice SET total = $2 WHERE id = $1', [42, rows[0].total + 7])
 * })
 */
export function fence<P extends PgPool>(pool: P, options: PgGuardOptions = {}): PgGuard<ClientOf<P>> {
  const { begin, attempts } = checked(pool, options)
  const dialect = pgDialect(options.schema)

  const guarded = async <T>(hold: GuardableHold, open: OpenOptions, body: (tx: PgClient) => Promise<T> | T) => {
    const opening = openingOf(hold, options, open)
    const check = () => hold.assertHeld()
    check()
    for (let attempt = 1; ; attempt++) {
      try {
        return await transaction(pool, `${begin}; ${dialect.lockShared}`, check, async (tx) => {
          await runSteps(openLockedSteps(dialect, opening), runner(tx))
          return await body(tx)
        })
      } catch (error) {
        if (attempt >= attempts || !isRetryable(error)) throw explain(error, opening)
        await backoff(attempt)
      }
    }
  }

  const raiseFloor = async (floor: bigint): Promise<Pruned> => {
    const free = () => {}
    try {
      const alone = `BEGIN; SET LOCAL lock_timeout = ${PRUNE_LOCK_TIMEOUT_MS}; ${dialect.lockExclusive}`
      const raised = await transaction(pool, alone, free, (tx) => runSteps(raiseFloorSteps(dialect, floor), runner(tx)))
      let deleted = raised.deleted
      for (let batch = PRUNE_BATCH_ROWS; batch === PRUNE_BATCH_ROWS; deleted += batch) {
        const steps = () => pruneMarksSteps(dialect, raised.floor)
        batch = await transaction(pool, 'BEGIN', free, (tx) => runSteps(steps(), runner(tx)))
      }
      return { floor: raised.floor, deleted }
    } catch (error) {
      throw explain(error)
    }
  }

  return {
    with<T>(
      hold: GuardableHold,
      optionsOrBody: OpenOptions | ((tx: Fenced<ClientOf<P>>) => T | Promise<T>),
      maybeBody?: (tx: Fenced<ClientOf<P>>) => T | Promise<T>,
    ): Promise<T> {
      return tracked(hold, async () => {
        const { options: open, body } = bodyOf(optionsOrBody, maybeBody)
        return await guarded(hold, open, (tx) => body(tx as unknown as Fenced<ClientOf<P>>))
      })
    },
    async enter(tx, hold, open) {
      const opening = openingOf(hold, options, open)
      hold.assertHeld()
      try {
        await runSteps(openSteps(dialect, opening), runner(tx))
      } catch (error) {
        await poison(tx)
        throw explain(error, opening)
      }
      return tx as Fenced<typeof tx>
    },
    open: (hold, open = {}) => tracked(hold, () => guarded(hold, open, () => {})),
    prune: async (locks) => raiseFloor(await oldestLiveToken(locks)),
    raiseFloor,
  }
}

/**
 * Changes one row that carries its own mark (the form `column`), in one statement. Works inside a transaction, and also
 * alone on a pool. Without `set` it opens the row: raises its mark and returns it; do this before you compute from it.
 * Deleting a row deletes its mark: keep the row, or use the guard table.
 * @throws StaleTokenError, MissingRowError, HoldLostError, InvalidError
 * @example
 * const invoice = await fencedUpdate(pool, hold, { table: 'invoice', where: { id: 42 } })
 * await fencedUpdate(pool, hold, { table: 'invoice', where: { id: 42 }, set: { total: invoice.total + 7 } })
 */
export function fencedUpdate(
  tx: PgQueries,
  hold: GuardableHold,
  change: RowChange,
  options: OpenOptions = {},
): Promise<Record<string, unknown>> {
  return tracked(hold, async () => {
    const opening = openingOf(hold, { resource: (_hold, lock) => lock }, options)
    const [target, ...more] = opening.targets as [Target, ...Target[]]
    if (more.length > 0)
      throw new InvalidError('a hold of several locks: which one protects this row?', { hint: 'say { lock }' })
    hold.assertHeld()
    try {
      return await runSteps(columnSteps(pgDialect(), target, change), runner(tx))
    } catch (error) {
      if (change.set !== undefined && isAnswerLost(error)) throw unknownOutcome(error)
      throw explain(error, opening)
    }
  })
}

function checked(pool: PgPool, options: PgGuardOptions): { begin: string; attempts: number } {
  const { isolation, attempts = ATTEMPTS_DEFAULT } = options
  if (typeof pool?.connect !== 'function') throw new InvalidError('a guard for PostgreSQL takes a Pool of pg')
  if (!Number.isSafeInteger(attempts) || attempts < 1 || attempts > ATTEMPTS_MAX) {
    throw new InvalidError(`attempts is a number from 1 to ${ATTEMPTS_MAX}, not ${attempts}`)
  }
  if (isolation === undefined) return { begin: 'BEGIN', attempts }
  if (!ISOLATIONS.includes(isolation)) throw new InvalidError(`isolation is one of ${ISOLATIONS.join(', ')}`)
  return { begin: `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`, attempts }
}

function runner(tx: PgQueries): (statement: Statement) => Promise<readonly Row[]> {
  return async ({ text, values }) => (await tx.query(text, values as unknown[])).rows as Row[]
}

/** Makes a refused transaction fail for good, even if the caller swallows the refusal. */
async function poison(tx: PgQueries): Promise<void> {
  try {
    await tx.query("DO $$ BEGIN RAISE EXCEPTION 'the guard has refused this transaction'; END $$")
  } catch {
    // That is what it is for.
  }
}

/** A random pause that grows with the attempts, so that two transactions do not meet again at the same point. */
function backoff(attempt: number): Promise<void> {
  const most = Math.min(BACKOFF_FIRST_MS * 2 ** attempt, BACKOFF_MAX_MS)
  return new Promise((resolve) => setTimeout(resolve, Math.random() * most))
}
