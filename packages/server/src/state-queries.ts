import { type Hex128, type HoldId, holdDetailsOf, type LockState, type SessionId, sessionOf } from '@leasehold/core'

/** The fields of a session that the server needs, copied out of the state. */
export interface SessionInfo {
  readonly id: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  readonly remainingMs: number
  /** The highest request number that the state knows. */
  readonly highest: number
  /** Requests whose answer is stored. */
  readonly answered: readonly number[]
  /** Acquires that are queued. */
  readonly waiting: readonly number[]
}

export function querySession(state: LockState, id: SessionId): SessionInfo | undefined {
  const session = sessionOf(state, id)
  if (session === undefined) return undefined
  const { secret, ttlMs, remainingMs, highestRequest: highest, answered, waiting } = session
  return { id, secret, ttlMs, remainingMs, highest, answered, waiting }
}

/** The names of the locks of a hold; empty if it does not exist. */
export function namesOfHold(state: LockState, hold: HoldId): readonly string[] {
  return holdDetailsOf(state, hold)?.locks.map((lock) => lock.name) ?? []
}
