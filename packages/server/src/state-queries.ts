import {
  type HoldDetails,
  type Hex128,
  type HoldId,
  holdDetailsOf,
  holdsOfLock,
  type LockState,
  type SessionId,
  sessionOf,
  sessionSecretOf,
} from '@leasehold/core'

/** What the network face needs to know of a session. Copied out of the state, so it may be kept. */
export interface SessionInfo {
  readonly id: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  readonly remainingMs: number
  /** Highest request number that the state knows of. */
  readonly highest: number
  /** Requests whose answer is kept. */
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

export { type HoldDetails, holdDetailsOf as holdFacts, holdsOfLock as holdsOf, sessionSecretOf as sessionSecret }

/** The locks of a hold; none when it is gone. */
export function namesOfHold(state: LockState, hold: HoldId): readonly string[] {
  return holdDetailsOf(state, hold)?.locks.map((lock) => lock.name) ?? []
}
