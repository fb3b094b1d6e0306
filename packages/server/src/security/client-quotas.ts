import { LimitError, type LockState, type SessionId, sessionOf } from '@leasehold/core'
import type { AppliedBatch, Member } from '@leasehold/replica'
import { COMMAND_TIMEOUT_MS } from '../limits.js'
import type { Caller } from './access-control.js'
import type { ClientLimits } from './client-limits.js'
import { clientOf } from './principal.js'

/** Sessions whose owner is kept; as many as the service can have. */
const SESSIONS_MAX = 1_000_000

export interface Owner {
  readonly principal: string
  readonly remote: string
}

interface CountedOwner extends Owner {
  /** The client whose quota includes the session. */
  readonly client: string
}

/** Requests of a client that the state does not show yet. */
interface Reservations {
  sessions: number
  waiters: number
}

/**
 * The quotas of sessions and waiting acquires per client, and the owners of sessions that were used through this member,
 * for the quotas and for the audit log. A request is reserved before it is submitted, so many requests in one frame
 * cannot exceed a quota.
 */
export class ClientQuotas {
  readonly #member: Member<LockState>
  readonly #limits: ClientLimits
  readonly #owners = new Map<SessionId, CountedOwner>()
  readonly #sessions = new Map<string, Set<SessionId>>()
  readonly #reserved = new Map<string, Reservations>()
  /** Session opens by nonce: the session belongs to its caller even if that disconnects before the response. */
  readonly #opening = new Map<string, { readonly caller: Caller; readonly answered: () => void }>()
  readonly #stop: () => void

  constructor(member: Member<LockState>, limits: ClientLimits) {
    this.#member = member
    this.#limits = limits
    this.#stop = member.onApplied((batch) => this.#applied(batch))
  }

  /** Records the caller as the owner of a session that exists. */
  recordOwner(session: SessionId, { principal, credentials }: Caller): void {
    const client = clientOf(principal, credentials.remote)
    const known = this.#owners.get(session)
    if ((known?.client === client && known.principal === principal.id) || this.#owners.size >= SESSIONS_MAX) return
    if (sessionOf(this.#member.stale().state, session) === undefined) return
    if (known !== undefined) this.#removeOwner(session)
    this.#owners.set(session, { principal: principal.id, remote: credentials.remote, client })
    const sessions = this.#sessions.get(client) ?? new Set()
    sessions.add(session)
    this.#sessions.set(client, sessions)
  }

  ownerOf(session: SessionId): Owner | undefined {
    const known = this.#owners.get(session)
    return known && { principal: known.principal, remote: known.remote }
  }

  /**
   * Reserves one more session. Returns a function that ends the reservation once the request was applied.
   * @throws LimitError
   */
  reserveSession(caller: Caller, nonce?: string): () => void {
    const client = clientOf(caller.principal, caller.credentials.remote)
    const { sessions: most } = this.#limits
    const used = (this.#sessions.get(client)?.size ?? 0) + (this.#reserved.get(client)?.sessions ?? 0)
    if (most !== undefined && used >= most) {
      throw new LimitError(`the limit of this client is reached: ${most} sessions`, {
        hint: 'close some, or share one between tasks',
      })
    }
    const release = this.#reserve(client, 'sessions')
    if (nonce === undefined || this.#opening.has(nonce)) return release
    const answered = (): void => {
      clearTimeout(timer)
      if (this.#opening.get(nonce)?.answered === answered) this.#opening.delete(nonce)
      release()
    }
    const timer = setTimeout(answered, COMMAND_TIMEOUT_MS)
    timer.unref()
    this.#opening.set(nonce, { caller, answered })
    return answered
  }

  get limitsWaiters(): boolean {
    return this.#limits.waiters !== undefined
  }

  /**
   * Reserves one more waiting acquire. Returns a function that ends the reservation once the request was applied.
   * @throws LimitError
   */
  reserveWaiter(caller: Caller): () => void {
    const { waiters: most } = this.#limits
    if (most === undefined) return () => {}
    const client = clientOf(caller.principal, caller.credentials.remote)
    const { state } = this.#member.stale()
    let waiting = this.#reserved.get(client)?.waiters ?? 0
    for (const session of this.#sessions.get(client) ?? []) waiting += sessionOf(state, session)?.waiting.length ?? 0
    if (waiting >= most)
      throw new LimitError(`the limit of this client is reached: ${most} waiting acquires`, {
        hint: 'acquire fewer locks at a time',
      })
    return this.#reserve(client, 'waiters')
  }

  stop(): void {
    this.#stop()
    for (const { answered } of [...this.#opening.values()]) answered()
  }

  #reserve(client: string, what: keyof Reservations): () => void {
    const reserved = this.#reserved.get(client) ?? { sessions: 0, waiters: 0 }
    this.#reserved.set(client, reserved)
    reserved[what]++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      reserved[what]--
      if (reserved.sessions === 0 && reserved.waiters === 0) this.#reserved.delete(client)
    }
  }

  #applied({ events }: AppliedBatch): void {
    for (const event of events) {
      if (event.kind === 'sessionEnded') this.#removeOwner(event.session)
      else if (event.kind === 'sessionOpened' && this.#opening.size > 0) this.#opened(event.session)
    }
  }

  #opened(session: SessionId): void {
    const nonce = sessionOf(this.#member.stale().state, session)?.nonce
    const opening = nonce === undefined ? undefined : this.#opening.get(nonce)
    if (opening === undefined) return
    this.recordOwner(session, opening.caller)
    opening.answered()
  }

  #removeOwner(session: SessionId): void {
    const owner = this.#owners.get(session)
    if (owner === undefined) return
    this.#owners.delete(session)
    const sessions = this.#sessions.get(owner.client)
    sessions?.delete(session)
    if (sessions?.size === 0) this.#sessions.delete(owner.client)
  }
}
