import { LimitError, type LockState, type SessionId, sessionOf } from '@leasehold/core'
import type { AppliedBatch, Member } from '@leasehold/replica'
import { COMMAND_TIMEOUT_MS } from '../limits.js'
import type { Caller } from './access-control.js'
import type { ClientLimits } from './rate-limiter.js'
import { clientOf } from './principal.js'

/** Sessions whose owner is remembered; as many as the service can have. */
const SESSIONS_MAX = 1_000_000

export interface Owner {
  readonly principal: string
  readonly remote: string
}

interface Known extends Owner {
  /** Whom the limits count it for. */
  readonly client: string
}

/** What a client has asked for, and the state does not show yet. */
interface Asked {
  sessions: number
  waiters: number
}

/**
 * Whose session is whose, as far as it was used through this member: for limits, and to tell the audit who did it. What was
 * asked for counts from the question on: many questions in one frame are no way around a limit.
 */
export class ClientQuotas {
  readonly #owners = new Map<SessionId, Known>()
  readonly #sessions = new Map<string, Set<SessionId>>()
  readonly #asked = new Map<string, Asked>()
  /** Openings by their nonce: the session is its caller's also when the caller has gone before the answer. */
  readonly #opening = new Map<string, { readonly caller: Caller; readonly answered: () => void }>()
  readonly #stop: () => void

  constructor(
    private readonly member: Member<LockState>,
    private readonly limits: ClientLimits,
  ) {
    this.#stop = member.onApplied((batch) => this.#applied(batch))
  }

  learn(session: SessionId, { principal, credentials }: Caller): void {
    const client = clientOf(principal, credentials.remote)
    const known = this.#owners.get(session)
    if ((known?.client === client && known.principal === principal.id) || this.#owners.size >= SESSIONS_MAX) return
    if (sessionOf(this.member.stale().state, session) === undefined) return
    if (known !== undefined) this.#forget(session)
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
   * One more session. Returns what tells that the question was answered.
   * @throws LimitError
   */
  opens(caller: Caller, nonce?: string): () => void {
    const client = clientOf(caller.principal, caller.credentials.remote)
    const { sessions: most } = this.limits
    const there = (this.#sessions.get(client)?.size ?? 0) + (this.#asked.get(client)?.sessions ?? 0)
    if (most !== undefined && there >= most) {
      throw new LimitError(`this client has ${most} sessions already`, {
        hint: 'close some, or share one between tasks',
      })
    }
    const counted = this.#ask(client, 'sessions')
    if (nonce === undefined || this.#opening.has(nonce)) return counted
    const answered = (): void => {
      clearTimeout(timer)
      if (this.#opening.get(nonce)?.answered === answered) this.#opening.delete(nonce)
      counted()
    }
    const timer = setTimeout(answered, COMMAND_TIMEOUT_MS)
    timer.unref()
    this.#opening.set(nonce, { caller, answered })
    return answered
  }

  get limitsWaiters(): boolean {
    return this.limits.waiters !== undefined
  }

  /**
   * One more acquire that may wait. Returns what tells that the question was answered.
   * @throws LimitError
   */
  waits(caller: Caller): () => void {
    const { waiters: most } = this.limits
    if (most === undefined) return () => {}
    const client = clientOf(caller.principal, caller.credentials.remote)
    const { state } = this.member.stale()
    let waiting = this.#asked.get(client)?.waiters ?? 0
    for (const session of this.#sessions.get(client) ?? []) waiting += sessionOf(state, session)?.waiting.length ?? 0
    if (waiting >= most)
      throw new LimitError(`this client waits for ${most} locks already`, { hint: 'ask less at a time' })
    return this.#ask(client, 'waiters')
  }

  stop(): void {
    this.#stop()
    for (const { answered } of [...this.#opening.values()]) answered()
  }

  #ask(client: string, what: keyof Asked): () => void {
    const asked = this.#asked.get(client) ?? { sessions: 0, waiters: 0 }
    this.#asked.set(client, asked)
    asked[what]++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      asked[what]--
      if (asked.sessions === 0 && asked.waiters === 0) this.#asked.delete(client)
    }
  }

  #applied({ events }: AppliedBatch): void {
    for (const event of events) {
      if (event.kind === 'sessionEnded') this.#forget(event.session)
      else if (event.kind === 'sessionOpened' && this.#opening.size > 0) this.#opened(event.session)
    }
  }

  #opened(session: SessionId): void {
    const nonce = sessionOf(this.member.stale().state, session)?.nonce
    const opening = nonce === undefined ? undefined : this.#opening.get(nonce)
    if (opening === undefined) return
    this.learn(session, opening.caller)
    opening.answered()
  }

  #forget(session: SessionId): void {
    const owner = this.#owners.get(session)
    if (owner === undefined) return
    this.#owners.delete(session)
    const sessions = this.#sessions.get(owner.client)
    sessions?.delete(session)
    if (sessions?.size === 0) this.#sessions.delete(owner.client)
  }
}
