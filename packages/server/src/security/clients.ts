import { LimitError, type LockState, type SessionId, sessionOf } from '@leasehold/core'
import type { AppliedBatch, Member } from '@leasehold/replica'
import type { ClientLimits } from './budget.js'
import type { Principal } from './principal.js'

/** Sessions whose owner is remembered; as many as the service can have. */
const SESSIONS_MAX = 1_000_000

export interface Owner {
  readonly principal: string
  readonly remote: string
}

/** Whose session is whose, as far as it was used through this member: for limits, and to tell the audit who did it. */
export class Clients {
  readonly #owners = new Map<SessionId, Owner>()
  readonly #sessions = new Map<string, Set<SessionId>>()
  readonly #stop: () => void

  constructor(
    private readonly member: Member<LockState>,
    private readonly limits: ClientLimits,
  ) {
    this.#stop = member.onApplied((batch) => this.#applied(batch))
  }

  learn(session: SessionId, principal: string, remote: string): void {
    const known = this.#owners.get(session)
    if (known?.principal === principal || this.#owners.size >= SESSIONS_MAX) return
    if (known !== undefined) this.#forget(session)
    this.#owners.set(session, { principal, remote })
    const sessions = this.#sessions.get(principal) ?? new Set()
    sessions.add(session)
    this.#sessions.set(principal, sessions)
  }

  ownerOf(session: SessionId): Owner | undefined {
    return this.#owners.get(session)
  }

  /** @throws LimitError */
  checkSessions({ id }: Principal): void {
    const { sessions: most } = this.limits
    if (most === undefined || (this.#sessions.get(id)?.size ?? 0) < most) return
    throw new LimitError(`this client has ${most} sessions already`, { hint: 'close some, or share one between tasks' })
  }

  /** @throws LimitError */
  checkWaiters({ id }: Principal): void {
    const { waiters: most } = this.limits
    if (most === undefined) return
    const { state } = this.member.stale()
    let waiting = 0
    for (const session of this.#sessions.get(id) ?? []) waiting += sessionOf(state, session)?.waiting.length ?? 0
    if (waiting >= most)
      throw new LimitError(`this client waits for ${most} locks already`, { hint: 'ask less at a time' })
  }

  stop(): void {
    this.#stop()
  }

  #applied({ events }: AppliedBatch): void {
    for (const event of events) if (event.kind === 'sessionEnded') this.#forget(event.session)
  }

  #forget(session: SessionId): void {
    const owner = this.#owners.get(session)
    if (owner === undefined) return
    this.#owners.delete(session)
    const sessions = this.#sessions.get(owner.principal)
    sessions?.delete(session)
    if (sessions?.size === 0) this.#sessions.delete(owner.principal)
  }
}
