import { InvalidError, parseToken } from '@leasehold/core'
import type { PruneLocks } from '../common/guard.js'
import { countOf, type Dialect } from './dialect.js'
import { bigintOf, type Steps } from './steps.js'

/** Marks deleted in one transaction. */
export const PRUNE_BATCH_ROWS = 10_000
const QUERY_PAGE_ROWS = 1_000
/** Pages of holds that are read before giving up: a million holds. */
const QUERY_PAGES_MAX = 1_000
/** The lock under which marks are pruned, so that its token is above that of every hold that is listed. */
export const PRUNE_LOCK = 'leasehold/guard-prune'

/**
 * The oldest token that is alive: of all holds, and of the hold that is taken here. Every later grant has a greater one.
 * The client must see all holds that use the guard: no namespace, no narrower rights.
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
 * Raises the floor, in a transaction of its own that has begun with `lockExclusive`: from its commit on, every token below is refused, and whoever read the old
 * floor has finished. Marks of permits go in the same step, since a kind may only be forgotten while nobody checks it.
 * Answers the floor and the number of deleted rows.
 */
export function* raiseFloorSteps(dialect: Dialect, floor: bigint): Steps<{ floor: bigint; deleted: number }> {
  const [row] = yield dialect.readFloor()
  if (row === undefined) throw new InvalidError("the guard's floor is missing: the migration has not run to its end")
  const old = bigintOf(row.floor)
  const raised = floor > old ? floor : old
  yield dialect.setFloor(raised.toString())
  const slots = yield dialect.pruneSlots(raised.toString())
  yield dialect.pruneKinds()
  return { floor: raised, deleted: countOf(slots) }
}

/** Deletes one batch of marks below a floor that is committed. Answers how many. */
export function* pruneMarksSteps(dialect: Dialect, floor: bigint): Steps<number> {
  const rows = yield dialect.pruneMarks(floor.toString(), PRUNE_BATCH_ROWS)
  return countOf(rows)
}
