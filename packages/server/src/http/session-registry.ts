import { randomBytes, timingSafeEqual } from 'node:crypto'
import {
  AccessError,
  type Command,
  type Hex128,
  LimitError,
  type Millis,
  type Numbered,
  type Result,
  SessionEndedError,
  type SessionId,
} from '@leasehold/core'
import type { AppliedBatch } from '@leasehold/replica'
import { SESSIONS_KEPT_MAX } from '../limits.js'
import { type SessionInfo, querySession } from '../state-queries.js'
import type { ReplicaClient } from '../replica-client.js'
import type { SessionHandle } from './handles.js'
import { HttpSession } from './http-session.js'

type Kind = Exclude<Result['kind'], 'refused'>

/** The sessions that are used over HTTP: opens, renews and ends them, and numbers their requests. */
export class SessionRegistry {
  readonly #sessions = new Map<SessionId, HttpSession>()
  readonly #stop: () => void

  constructor(readonly replica: ReplicaClient) {
    const { member } = replica
    this.#stop = member.onApplied((batch) => this.#applied(batch))
  }

  /** Opens a session. A nonce that the service knows returns the same session again. */
  async open(options: { ttlMs: number; client: string; nonce?: Hex128 | undefined }): Promise<HttpSession> {
    const from = performance.now()
    const opened = await this.replica.submit(
      {
        kind: 'openSession',
        nonce: options.nonce ?? randomBytes(16).toString('hex'),
        secret: randomBytes(16).toString('hex'),
        ttlMs: options.ttlMs as Millis,
        client: options.client,
        local: false,
      },
      'opened',
    )
    const known = this.#sessions.get(opened.session)
    if (known !== undefined) return known
    const facts = querySession(this.replica.member.stale().state, opened.session)
    if (facts === undefined) throw ended(opened.session)
    const session = new HttpSession(facts, this.#term)
    // Opening again with the same nonce renews nothing.
    if (options.nonce === undefined) session.leaseFromMs = from
    return this.#keep(session)
  }

  /**
   * The session of a handle.
   * @throws SessionEndedError, AccessError when the handle's secret is wrong
   */
  async use(handle: SessionHandle): Promise<HttpSession> {
    const known = this.#sessions.get(handle.session)
    if (known !== undefined && known.term === this.#term) {
      checkSecret(known.secret, handle.secret, 'session')
      return this.#keep(known)
    }
    const facts = await this.#facts(handle.session)
    checkSecret(facts.secret, handle.secret, 'session')
    const session = this.#sessions.get(handle.session) ?? new HttpSession(facts, this.#term)
    session.refresh(facts, this.#term)
    return this.#keep(session)
  }

  /** Submits a numbered request and takes care of numbers and acknowledgements. */
  async numbered<K extends Kind>(
    session: HttpSession,
    given: number | undefined,
    build: (numbered: Numbered) => Command,
    ...kinds: readonly K[]
  ): Promise<Extract<Result, { kind: K }>> {
    const request = session.take(given)
    try {
      return await this.send(session, request, build, ...kinds)
    } finally {
      session.finish(request)
    }
  }

  /** Submits a request whose number is taken already. */
  async send<K extends Kind>(
    session: HttpSession,
    request: number,
    build: (numbered: Numbered) => Command,
    ...kinds: readonly K[]
  ): Promise<Extract<Result, { kind: K }>> {
    const ack = session.ack()
    const result = await this.replica.submit(build({ session: session.id, request, ack }), ...kinds)
    session.acknowledged(ack)
    return result
  }

  /** Renews the lease. What the service had to tell the session is taken note of. */
  async renew(session: HttpSession): Promise<void> {
    const from = performance.now()
    const ack = session.ack()
    const { changes } = await this.replica.submit(
      { kind: 'renew', session: session.id, seen: session.seen, ack },
      'renewed',
    )
    session.acknowledged(ack)
    session.leaseFromMs = Math.max(session.leaseFromMs ?? from, from)
    for (const change of changes) session.change(change)
  }

  /** A clean end by the owner. */
  async close(session: HttpSession, reason: string): Promise<void> {
    await this.replica.submit({ kind: 'closeSession', session: session.id, by: 'owner', reason }, 'closed')
    this.#forget(session.id)
  }

  /** Milliseconds until the session ends if nothing renews it. */
  expiresInMs(session: HttpSession): number {
    if (session.leaseFromMs !== undefined) {
      return Math.max(0, Math.floor(session.leaseFromMs + session.ttlMs - performance.now()))
    }
    return querySession(this.replica.member.stale().state, session.id)?.remainingMs ?? 0
  }

  stop(): void {
    this.#stop()
  }

  get #term(): number {
    return this.replica.member.status.term
  }

  async #facts(id: SessionId): Promise<SessionInfo> {
    const facts = await this.replica.read(false, ({ state }) => querySession(state, id))
    if (facts === undefined) throw ended(id)
    return facts
  }

  #keep(session: HttpSession): HttpSession {
    this.#sessions.delete(session.id)
    if (this.#sessions.size >= SESSIONS_KEPT_MAX) this.#makeRoom()
    this.#sessions.set(session.id, session)
    return session
  }

  /** Drops the session that was used longest ago and has nothing at work. */
  #makeRoom(): void {
    for (const session of this.#sessions.values()) {
      if (session.busy) continue
      this.#sessions.delete(session.id)
      return
    }
    throw new LimitError(`${SESSIONS_KEPT_MAX} sessions have requests at work over HTTP`)
  }

  #forget(id: SessionId): void {
    const session = this.#sessions.get(id)
    this.#sessions.delete(id)
    session?.end()
  }

  #applied(batch: AppliedBatch): void {
    for (const push of batch.pushes) {
      const session = this.#sessions.get(push.session)
      if (session === undefined) continue
      if (push.change !== undefined) session.change(push.change)
      if (push.ended !== undefined) this.#forget(push.session)
    }
  }
}

export function checkSecret(expected: Hex128, given: Hex128, what: string): void {
  const same = expected.length === given.length && timingSafeEqual(Buffer.from(expected), Buffer.from(given))
  if (!same) throw new AccessError(`the secret of this ${what} handle is wrong`, { code: 'forbidden' })
}

export function ended(id: SessionId): SessionEndedError {
  return new SessionEndedError(`session ${id} does not exist`, { hint: 'it has expired or was closed: open a new one' })
}
