import { randomBytes } from 'node:crypto'
import {
  AbortedError,
  type Grant,
  type Hex128,
  type HoldId,
  holdDetailsOf,
  HoldLostError,
  InvalidError,
  type LeaseholdError,
  LimitError,
  type LockRequest,
  type Millis,
  type Result,
  UnavailableError,
  UnknownOutcomeError,
} from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import { WAITING_MAX } from '../limits.js'
import type { HttpSession, Outcome } from './http-session.js'
import { ended, type SessionRegistry } from './session-registry.js'

export interface AcquireSpec {
  readonly locks: readonly LockRequest[]
  readonly waitMs: number
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  readonly data: Uint8Array
  /** The request number, if the client sent its own. */
  readonly request: number | undefined
  /** Called when the replica has applied the acquire: from then on the state shows whether it waits. */
  readonly answered: () => void
  /** The error that ends the wait if the caller lost its permission; undefined while it is still allowed. */
  readonly revocation: () => LeaseholdError | undefined
}

/** The result of an acquire or adopt. `lasting`: a persistent hold, which no longer needs a session. */
export interface AcquiredHold {
  readonly grant: Grant
  readonly lasting: boolean
}

/**
 * Acquires and adopts holds over HTTP. The response is sent when the lock is granted. A client that disconnects, or a
 * server that stops, cancels the acquire, and releases exactly its grant if that came first.
 */
export class AcquireService {
  readonly #sessions: SessionRegistry
  readonly #log: Logger
  readonly #waits = new Set<(error: LeaseholdError) => void>()
  readonly #background = new Set<Promise<unknown>>()
  #stopping = false

  /** Number of acquires that wait for a grant. */
  get waiting(): number {
    return this.#waits.size
  }

  constructor(sessions: SessionRegistry, log: Logger) {
    this.#sessions = sessions
    this.#log = log
  }

  /**
   * Acquires within `session`. `owned`: the session was opened for this acquire alone, is renewed while the acquire
   * waits, and is closed if it fails, unless a retry of the same request is in progress or was granted.
   */
  async acquire(
    session: HttpSession,
    owned: boolean,
    spec: AcquireSpec,
    disconnected: AbortSignal,
  ): Promise<AcquiredHold> {
    try {
      const grant = await this.#waitFor(session, owned, spec, disconnected)
      if (spec.persistent) await this.#confirm(session, owned, spec.request)
      else if (owned) await this.#restoreFullLease(session)
      session.granted = true
      return { grant, lasting: spec.persistent }
    } catch (error) {
      if (owned) this.#abandon(session, 'the acquire was not granted')
      throw error
    } finally {
      spec.answered()
    }
  }

  /** Moves a hold into `session`, under a new id and a new token. */
  async adopt(
    session: HttpSession,
    owned: boolean,
    spec: { hold: HoldId; secret: Hex128; request: number | undefined },
  ): Promise<AcquiredHold> {
    const { hold, secret } = spec
    const newSecret = randomBytes(16).toString('hex')
    try {
      const { grant } = await this.#sessions.numbered(
        session,
        spec.request,
        (numbered) => ({ kind: 'adopt', ...numbered, hold, secret, newSecret }),
        'granted',
      )
      const lasting = holdDetailsOf(this.#sessions.replica.member.stale().state, grant.hold)?.persistent ?? false
      if (lasting) await this.#confirm(session, owned, spec.request)
      session.granted = true
      return { grant, lasting }
    } catch (error) {
      if (owned) this.#abandon(session, 'the hold was not adopted')
      throw error
    }
  }

  /** Releases the grant of a request whose client disconnected before the response was sent. */
  undo(session: HttpSession, owned: boolean, grant: Grant): void {
    const secret = grant.secret === undefined ? { session: session.id } : { secret: grant.secret }
    const release = { kind: 'release', hold: grant.hold, ...secret } as const
    this.#inBackground(this.#sessions.replica.submit(release, 'released'))
    if (owned) this.#inBackground(this.#sessions.close(session, 'its client disconnected'))
  }

  /** Rejects the pending response of a request that was cancelled. */
  cancelled(session: HttpSession, request: number): void {
    const refused = { kind: 'refused', code: 'aborted', message: 'the acquire was cancelled' } as const
    session.resolveOutcome(request, { kind: 'refused', refused })
  }

  /** Rejects all pending acquires, and resolves when they are cancelled in the log. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const interrupt of this.#waits) interrupt(stopping())
    await new Promise((resolve) => setImmediate(resolve))
    await Promise.allSettled(this.#background)
  }

  async #waitFor(session: HttpSession, owned: boolean, spec: AcquireSpec, disconnected: AbortSignal): Promise<Grant> {
    if (this.#stopping) throw stopping()
    if (disconnected.aborted) throw clientDisconnected()
    if (this.#waits.size >= WAITING_MAX) throw new LimitError(`${WAITING_MAX} acquires already wait over HTTP`)
    const request = session.claimNumber(spec.request)
    let unsubscribe = (): void => {}
    let interrupt: (error: LeaseholdError) => void = () => {}
    let isInterrupted = false
    const interrupted = new Promise<never>((_, reject) => {
      interrupt = (error) => {
        isInterrupted = true
        reject(error)
      }
    })
    interrupted.catch(() => {})
    const onDisconnect = () => interrupt(clientDisconnected())
    disconnected.addEventListener('abort', onDisconnect, { once: true })
    this.#waits.add(interrupt)
    const renewals = owned ? this.#keepAlive(session, spec.revocation, interrupt) : undefined
    let settled = false
    try {
      const outcome = new Promise<Outcome>((resolve) => {
        unsubscribe = session.onOutcome(request, resolve)
      })
      const submitted = this.#submit(session, request, spec).finally(spec.answered)
      const result = await Promise.race([submitted, interrupted])
      const end = result.kind === 'queued' ? await Promise.race([outcome, interrupted]) : result
      const revoked = owned && result.kind === 'queued' ? spec.revocation() : undefined
      if (revoked !== undefined) throw revoked
      settled = true
      return this.#grantOf(session, end)
    } catch (error) {
      const unknown = spec.request === undefined && error instanceof UnknownOutcomeError
      // A client that numbers its requests retries to keep its place in the queue, or cancels the request.
      const isKept = spec.request !== undefined && disconnected.aborted
      const orphaned = !settled && ((isInterrupted && !isKept) || unknown)
      if (orphaned && !owned && !session.isShared(request)) this.#cancel(session, request)
      throw error
    } finally {
      unsubscribe()
      clearInterval(renewals)
      this.#waits.delete(interrupt)
      disconnected.removeEventListener('abort', onDisconnect)
      session.releaseNumber(request)
    }
  }

  #submit(session: HttpSession, request: number, spec: AcquireSpec) {
    const { locks, waitMs, lockDelayMs, persistent, portable, data } = spec
    const options = { locks, waitMs, lockDelayMs: lockDelayMs as Millis, persistent, portable, data }
    return this.#sessions.send(
      session,
      request,
      (numbered) => ({ kind: 'acquire', ...numbered, ...options }),
      'granted',
      'queued',
      'ended',
    )
  }

  #grantOf(session: HttpSession, end: Outcome | Extract<Result, { kind: 'granted' | 'ended' }>): Grant {
    if (end.kind === 'granted') return end.grant
    if (end.kind === 'session-ended') throw ended(session.id)
    if (end.kind === 'refused') throw this.#sessions.replica.errorOf(end.refused)
    throw new HoldLostError(lostReason(end.reason), `hold ${end.hold} of this request has ended: ${end.reason}`)
  }

  /**
   * Renews the session of a waiting acquire for as long as the connection of its client is open and the caller is
   * still allowed to acquire.
   */
  #keepAlive(
    session: HttpSession,
    revocation: AcquireSpec['revocation'],
    interrupt: (error: LeaseholdError) => void,
  ): NodeJS.Timeout {
    const every = Math.max(20, Math.floor(session.ttlMs / 3))
    return setInterval(() => {
      const revoked = revocation()
      if (revoked !== undefined) return interrupt(revoked)
      this.#sessions.renew(session).catch((error: unknown) => {
        this.#log.info('cannot renew the session of a waiting acquire', { session: session.id, error: String(error) })
      })
    }, every)
  }

  /** Renews the lease, so that the holder starts with a full TTL even after a long wait. */
  async #restoreFullLease(session: HttpSession): Promise<void> {
    const used = session.ttlMs - this.#sessions.expiresInMs(session)
    if (used < session.ttlMs / 20) return
    try {
      await this.#sessions.renew(session)
    } catch (error) {
      this.#log.info('a new hold starts with a partly used lease', { session: session.id, error: String(error) })
    }
  }

  /** Confirms a persistent grant: from then on the hold outlives its session, so the session is no longer needed. */
  async #confirm(session: HttpSession, owned: boolean, given: number | undefined): Promise<void> {
    if (given !== undefined) session.discardAnswer(given)
    await this.#sessions.renew(session)
    if (owned) this.#inBackground(this.#sessions.close(session, 'its hold is persistent'))
  }

  /** Closes the session of a failed request, unless a retry with the same nonce still uses it. */
  #abandon(session: HttpSession, reason: string): void {
    if (!session.busy && !session.granted) this.#inBackground(this.#sessions.close(session, reason))
  }

  #cancel(session: HttpSession, target: number): void {
    this.#inBackground(
      this.#sessions.numbered(session, undefined, (numbered) => ({ kind: 'cancel', ...numbered, target }), 'cancelled'),
    )
  }

  /** Tracks work that no client waits for, until it is done. */
  #inBackground(work: Promise<unknown>): void {
    this.#background.add(work)
    work
      .catch((error: unknown) => {
        this.#log.info('cannot undo an acquire; its session expires after its TTL', { error: String(error) })
      })
      .finally(() => this.#background.delete(work))
  }
}

/** Maps the reason in the log to the reason that clients know. */
export function lostReason(reason: string): 'expired' | 'stolen' | 'moved' | 'closed' {
  if (reason === 'stolen' || reason === 'moved' || reason === 'expired') return reason
  return reason === 'death' ? 'expired' : 'closed'
}

/** @throws InvalidError when `ttlMs` is given and differs from the TTL of the session */
export function checkTtl(session: HttpSession, ttlMs: number | undefined): void {
  if (ttlMs === undefined || ttlMs === session.ttlMs) return
  throw new InvalidError(`the session has a ttl of ${session.ttlMs} ms, not ${ttlMs} ms`, {
    code: 'mismatch',
    hint: 'omit the ttl, or open another session',
  })
}

function clientDisconnected(): AbortedError {
  return new AbortedError('the client disconnected while the acquire was waiting')
}

function stopping(): UnavailableError {
  return new UnavailableError('the server is stopping; nothing was acquired', { hint: 'retry the request' })
}
