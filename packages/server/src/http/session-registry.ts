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

/** The sessions that are used over HTTP: opens, renews and closes them, and numbers their requests. */
export class SessionRegistry {
  readonly #sessions = new Map<SessionId, HttpSession>()
  readonly #stop: () => void

  constructor(readonly replica: ReplicaClient) {
    const { member } = replica
    this.#stop = member.onApplied((batch) => this.#applied(batch))
  }

  /** Opens a session, or returns the session that was opened with the same nonce. */
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
    const info = querySession(this.replica.member.stale().state, opened.session)
    if (info === undefined) throw ended(opened.session)
    const session = new HttpSession(info, this.#term)
    // A repeated open with the same nonce does not renew the lease.
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
    const info = await this.#read(handle.session)
    checkSecret(info.secret, handle.secret, 'session')
    const session = this.#sessions.get(handle.session) ?? new HttpSession(info, this.#term)
    session.refresh(info, this.#term)
    return this.#keep(session)
  }

  /** Claims a number, submits the request with it, and releases the number. */
  async numbered<K extends Kind>(
    session: HttpSession,
    given: number | undefined,
    build: (numbered: Numbered) => Command,
    ...kinds: readonly K[]
  ): Promise<Extract<Result, { kind: K }>> {
    const request = session.claimNumber(given)
    try {
      return await this.send(session, request, build, ...kinds)
    } finally {
      session.releaseNumber(request)
    }
  }

  /** Submits a request whose number was claimed before, with the acknowledgements that are due. */
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

  /** Renews the lease, and applies the changes that the renewal returns. */
  async renew(session: HttpSession): Promise<void> {
    const from = performance.now()
    const ack = session.ack()
    const { changes } = await this.replica.submit(
      { kind: 'renew', session: session.id, seen: session.seen, ack },
      'renewed',
    )
    session.acknowledged(ack)
    session.leaseFromMs = Math.max(session.leaseFromMs ?? from, from)
    for (const change of changes) session.applyChange(change)
  }

  /** Closes the session as its owner. */
  async close(session: HttpSession, reason: string): Promise<void> {
    await this.replica.submit({ kind: 'closeSession', session: session.id, by: 'owner', reason }, 'closed')
    this.#remove(session.id)
  }

  /** Milliseconds until the session expires unless it is renewed. */
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

  async #read(id: SessionId): Promise<SessionInfo> {
    const info = await this.replica.read(false, ({ state }) => querySession(state, id))
    if (info === undefined) throw ended(id)
    return info
  }

  #keep(session: HttpSession): HttpSession {
    this.#sessions.delete(session.id)
    if (this.#sessions.size >= SESSIONS_KEPT_MAX) this.#evictIdle()
    this.#sessions.set(session.id, session)
    return session
  }

  /** Evicts the least recently used session without open requests. @throws LimitError when all sessions have some */
  #evictIdle(): void {
    for (const session of this.#sessions.values()) {
      if (session.busy) continue
      this.#sessions.delete(session.id)
      return
    }
    throw new LimitError(`${SESSIONS_KEPT_MAX} sessions have open requests over HTTP`)
  }

  #remove(id: SessionId): void {
    const session = this.#sessions.get(id)
    this.#sessions.delete(id)
    session?.end()
  }

  #applied(batch: AppliedBatch): void {
    for (const push of batch.pushes) {
      const session = this.#sessions.get(push.session)
      if (session === undefined) continue
      if (push.change !== undefined) session.applyChange(push.change)
      if (push.ended !== undefined) this.#remove(push.session)
    }
  }
}

/** @throws AccessError when the secrets differ; compares them in constant time */
export function checkSecret(expected: Hex128, given: Hex128, what: string): void {
  const same = expected.length === given.length && timingSafeEqual(Buffer.from(expected), Buffer.from(given))
  if (!same) throw new AccessError(`the secret of this ${what} handle is wrong`, { code: 'forbidden' })
}

export function ended(id: SessionId): SessionEndedError {
  return new SessionEndedError(`session ${id} does not exist`, { hint: 'it expired or was closed: open a new one' })
}
