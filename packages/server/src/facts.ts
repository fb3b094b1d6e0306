import type { HeldLock, Hex128, HoldId, LockState, SessionId } from '@leasehold/core'

/** What the network face needs to know of a session. Copied out of the state, so it may be kept. */
export interface SessionFacts {
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

/** What the network face needs to know of a hold. */
export interface HoldFacts {
  readonly id: HoldId
  readonly session: SessionId | undefined
  readonly secret: Hex128 | undefined
  readonly persistent: boolean
  /** It outlives its session. */
  readonly confirmed: boolean
  readonly locks: readonly HeldLock[]
}

export function sessionFacts(state: LockState, id: SessionId): SessionFacts | undefined {
  const session = state.machine.sessions.get(id)
  if (session === undefined) return undefined
  const answered: number[] = []
  const waiting: number[] = []
  let highest = session.lowest - 1
  for (const request of session.acknowledged) highest = Math.max(highest, request)
  for (const [request, answer] of session.answers) {
    highest = Math.max(highest, request)
    if (answer.waiter === undefined) answered.push(request)
    else waiting.push(request)
  }
  const remainingMs = Math.max(0, session.expiresAt - state.machine.now)
  return { id, secret: session.secret, ttlMs: session.ttlMs, remainingMs, highest, answered, waiting }
}

export function sessionSecret(state: LockState, id: SessionId): Hex128 | undefined {
  return state.machine.sessions.get(id)?.secret
}

export function holdFacts(state: LockState, id: HoldId): HoldFacts | undefined {
  const hold = state.machine.holds.get(id)
  if (hold === undefined) return undefined
  const { secret, persistent, confirmed, held: locks } = hold
  return { id, session: hold.session?.id, secret, persistent, confirmed, locks }
}

/** Ids of the holds of a lock, oldest first. */
export function holdsOf(state: LockState, name: string): HoldId[] {
  const lock = state.machine.locks.get(name)
  if (lock === undefined) return []
  const holds = [lock.exclusive, ...(lock.shared ?? []), ...(lock.slots ?? [])]
  return holds.flatMap((hold) => (hold === undefined ? [] : [hold.id])).sort((a, b) => a - b)
}
