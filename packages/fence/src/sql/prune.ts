import { InvalidError, parseToken } from '@leasehold/core'
import type { PruneLocks } from '../common/guard.js'
import { countOf, type Dialect } from './dialect.js'
import { bigintOf, type Steps } from './steps.js'

/** How many marks one transaction deletes. */
export const PRUNE_BATCH_ROWS = 10_000
const QUERY_PAGE_ROWS = 1_000
/** How many pages of holds are read at most: a million holds. */
const QUERY_PAGES_MAX = 1_000
/** The lock under which marks are pruned. Its token is above that of every listed hold. */
export const PRUNE_LOCK = 'leasehold/guard-prune'

/**
 * Returns the lowest token of all present holds, including one that is acquired here. Every later grant has a higher one.
 * The client must see all holds that use the guard: without a namespace, with full rights.
 */
export async function oldestLiveToken(locks: PruneLocks): Promise<bigint> {
  const own = await locks.acquire(PRUNE_LOCK)
  try {
    let oldest: bigint = parseToken(own.tokenOf(PRUNE_LOCK))
    let cursor: string | undefined
    for (let page = 0; page < QUERY_PAGES_MAX; page++) {
      const answer = await locks.query({ limit: QUERY_PAGE_ROWS, ...(cursor === undefined ? {} : { cursor }) })
      for (const hold of answer.held) {
        for (const lock of hold.locks) if (lock.token < oldest) oldest = lock.token
      }
      cursor = answer.next
      if (cursor === undefined) return oldest
    }
    throw new InvalidError(`more than ${QUERY_PAGES_MAX * QUERY_PAGE_ROWS} holds: nothing was pruned`)
  } finally {
    await own.release()
  }
}

/**
 * Raises the floor in a transaction of its own that begins with `lockExclusive`. From its commit on every lower token is rejected,
 * and every transaction that read the old floor has ended. Marks of permits are deleted in the same transaction, because a kind may
 * only be deleted while no check reads it. Returns the floor and the number of deleted rows.
 */
export function* raiseFloorSteps(dialect: Dialect, floor: bigint): Steps<{ floor: bigint; deleted: number }> {
  const [row] = yield dialect.readFloor()
  if (row === undefined) throw new InvalidError("the guard's floor is missing: the migration did not complete")
  const old = bigintOf(row.floor)
  const raised = floor > old ? floor : old
  yield dialect.setFloor(raised.toString())
  const slots = yield dialect.pruneSlots(raised.toString())
  yield dialect.pruneKinds()
  return { floor: raised, deleted: countOf(slots) }
}

/** Deletes one batch of marks below a committed floor. Returns their number. */
export function* pruneMarksSteps(dialect: Dialect, floor: bigint): Steps<number> {
  const rows = yield dialect.pruneMarks(floor.toString(), PRUNE_BATCH_ROWS)
  return countOf(rows)
}
