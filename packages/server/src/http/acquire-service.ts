import { randomBytes } from 'node:crypto'
import {
  AbortedError,
  type Grant,
  type Hex128,
  type HoldId,
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
import { holdFacts } from '../state-queries.js'
import type { HttpSession, Outcome } from './http-session.js'
import { ended, type SessionRegistry } from './session-registry.js'

export interface AcquireSpec {
  readonly locks: readonly LockRequest[]
  readonly waitMs: number
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  readonly data: Uint8Array
  /** The client's own number. */
  readonly request: number | undefined
  /** Told once the service has taken it: from then on its state shows whether it waits. */
  readonly answered: () => void
  /** Why the caller may not have it any more; undefined: it may. */
  readonly ends: () => LeaseholdError | undefined
}

/** What an acquire or adopt came to. `lasting`: a persistent hold, which needs no session any more. */
export interface Got {
  readonly grant: Grant
  readonly lasting: boolean
}

/**
 * Acquires over HTTP. The request is answered when the lock is granted; a client that goes away meanwhile, and a server
 * that stops, cancel the acquire, and release exactly its grant if that came first.
 */
export class AcquireService {
  readonly #waits = new Set<(error: LeaseholdError) => void>()
  readonly #undoing = new Set<Promise<unknown>>()
  #stopping = false

  /** Acquires that wait. */
  get waiting(): number {
    return this.#waits.size
  }

  constructor(
    readonly sessions: SessionRegistry,
    readonly log: Logger,
  ) {}

  /**
   * Acquires within `session`; `owned`: the session was opened for this acquire, is kept alive while it waits, and ends
   * with it when it fails, unless a repeat of it goes on or was granted.
   */
  async acquire(session: HttpSession, owned: boolean, spec: AcquireSpec, gone: AbortSignal): Promise<Got> {
    try {
      const grant = await this.#waitFor(session, owned, spec, gone)
      if (spec.persistent) await this.#confirm(session, owned, spec.request)
      else if (owned) await this.#startFresh(session)
      session.granted = true
      return { grant, lasting: spec.persistent }
    } catch (error) {
      if (owned) this.#abandon(session, 'the acquire was not granted')
      throw error
    } finally {
      spec.answered()
    }
  }

  /** Takes a hold over into `session`. */
  async adopt(
    session: HttpSession,
    owned: boolean,
    spec: { hold: HoldId; secret: Hex128; request: number | undefined },
  ): Promise<Got> {
    const { hold, secret } = spec
    const newSecret = randomBytes(16).toString('hex')
    try {
      const { grant } = await this.sessions.numbered(
        session,
        spec.request,
        (numbered) => ({ kind: 'adopt', ...numbered, hold, secret, newSecret }),
        'granted',
      )
      const lasting = holdFacts(this.sessions.replica.member.stale().state, grant.hold)?.persistent ?? false
      if (lasting) await this.#confirm(session, owned, spec.request)
      session.granted = true
      return { grant, lasting }
    } catch (error) {
      if (owned) this.#abandon(session, 'the hold was not adopted')
      throw error
    }
  }

  /** Releases the grant of a request whose client went away before it had the answer. */
  undo(session: HttpSession, owned: boolean, grant: Grant): void {
    const secret = grant.secret === undefined ? { session: session.id } : { secret: grant.secret }
    const release = { kind: 'release', hold: grant.hold, ...secret } as const
    this.#later(this.sessions.replica.submit(release, 'released'))
    if (owned) this.#later(this.sessions.close(session, 'its client has gone'))
  }

  /** Ends the waiting of a request that was cancelled. */
  cancelled(session: HttpSession, request: number): void {
    const refused = { kind: 'refused', code: 'aborted', message: 'the acquire was cancelled' } as const
    session.settle(request, { kind: 'refused', refused })
  }

  /** Answers everybody who waits, and resolves when their acquires are cancelled. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const end of this.#waits) end(stopping())
    await new Promise((resolve) => setImmediate(resolve))
    await Promise.allSettled(this.#undoing)
  }

  async #waitFor(session: HttpSession, owned: boolean, spec: AcquireSpec, gone: AbortSignal): Promise<Grant> {
    if (this.#stopping) throw stopping()
    if (gone.aborted) throw clientGone()
    if (this.#waits.size >= WAITING_MAX) throw new LimitError(`${WAITING_MAX} acquires wait over HTTP`)
    const request = session.take(spec.request)
    let takeBack = (): void => {}
    let interrupt: (error: LeaseholdError) => void = () => {}
    let isInterrupted = false
    const interrupted = new Promise<never>((_, reject) => {
      interrupt = (error) => {
        isInterrupted = true
        reject(error)
      }
    })
    interrupted.catch(() => {})
    const onGone = () => interrupt(clientGone())
    gone.addEventListener('abort', onGone, { once: true })
    this.#waits.add(interrupt)
    const renewals = owned ? this.#keepAlive(session, spec.ends, interrupt) : undefined
    let settled = false
    try {
      const outcome = new Promise<Outcome>((resolve) => {
        takeBack = session.await(request, resolve)
      })
      const submitted = this.#submit(session, request, spec).finally(spec.answered)
      const result = await Promise.race([submitted, interrupted])
      const end = result.kind === 'queued' ? await Promise.race([outcome, interrupted]) : result
      const refused = owned && result.kind === 'queued' ? spec.ends() : undefined
      if (refused !== undefined) throw refused
      settled = true
      return this.#grantOf(session, end)
    } catch (error) {
      const unknown = spec.request === undefined && error instanceof UnknownOutcomeError
      // A client with a number of its own comes back for its place in the queue, or cancels it.
      const isKept = spec.request !== undefined && gone.aborted
      const orphaned = !settled && ((isInterrupted && !isKept) || unknown)
      if (orphaned && !owned && !session.shared(request)) this.#cancel(session, request)
      throw error
    } finally {
      takeBack()
      clearInterval(renewals)
      this.#waits.delete(interrupt)
      gone.removeEventListener('abort', onGone)
      session.finish(request)
    }
  }

  #submit(session: HttpSession, request: number, spec: AcquireSpec) {
    const { locks, waitMs, lockDelayMs, persistent, portable, data } = spec
    const options = { locks, waitMs, lockDelayMs: lockDelayMs as Millis, persistent, portable, data }
    return this.sessions.send(
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
    if (end.kind === 'refused') throw this.sessions.replica.errorOf(end.refused)
    throw new HoldLostError(lostReason(end.reason), `hold ${end.hold} of this request has ended: ${end.reason}`)
  }

  /**
   * While its client waits, and still may, the session of a waiting acquire lives: the open connection is the sign of
   * life.
   */
  #keepAlive(
    session: HttpSession,
    ends: AcquireSpec['ends'],
    interrupt: (error: LeaseholdError) => void,
  ): NodeJS.Timeout {
    const every = Math.max(20, Math.floor(session.ttlMs / 3))
    return setInterval(() => {
      const refused = ends()
      if (refused !== undefined) return interrupt(refused)
      this.sessions.renew(session).catch((error: unknown) => {
        this.log.info('the session of a waiting acquire was not renewed', { session: session.id, error: String(error) })
      })
    }, every)
  }

  /** The holder begins with a whole TTL, also after a long wait. */
  async #startFresh(session: HttpSession): Promise<void> {
    const used = session.ttlMs - this.sessions.expiresInMs(session)
    if (used < session.ttlMs / 20) return
    try {
      await this.sessions.renew(session)
    } catch (error) {
      this.log.info('a new hold starts with a used lease', { session: session.id, error: String(error) })
    }
  }

  /** A persistent hold outlives its session from here on, so that its handle may be given away. */
  async #confirm(session: HttpSession, owned: boolean, given: number | undefined): Promise<void> {
    if (given !== undefined) session.forget(given)
    await this.sessions.renew(session)
    if (owned) this.#later(this.sessions.close(session, 'its hold is persistent'))
  }

  /** Ends the session of a request that came to nothing, unless a repeat with the same nonce lives on it. */
  #abandon(session: HttpSession, reason: string): void {
    if (!session.busy && !session.granted) this.#later(this.sessions.close(session, reason))
  }

  #cancel(session: HttpSession, target: number): void {
    this.#later(
      this.sessions.numbered(session, undefined, (numbered) => ({ kind: 'cancel', ...numbered, target }), 'cancelled'),
    )
  }

  /** Work that no client waits for. */
  #later(work: Promise<unknown>): void {
    this.#undoing.add(work)
    work
      .catch((error: unknown) => {
        this.log.info('an acquire was not undone; its session ends by its TTL', { error: String(error) })
      })
      .finally(() => this.#undoing.delete(work))
  }
}

/** Why a hold that the state no longer has was lost, in the client's words. */
export function lostReason(reason: string): 'expired' | 'stolen' | 'moved' | 'closed' {
  if (reason === 'stolen' || reason === 'moved' || reason === 'expired') return reason
  return reason === 'death' ? 'expired' : 'closed'
}

export function leaseMismatch(session: HttpSession, ttlMs: number | undefined): void {
  if (ttlMs === undefined || ttlMs === session.ttlMs) return
  throw new InvalidError(`the session has a ttl of ${session.ttlMs} ms, not ${ttlMs} ms`, {
    code: 'mismatch',
    hint: 'leave the ttl out, or open another session',
  })
}

function clientGone(): AbortedError {
  return new AbortedError('the client went away while it waited')
}

function stopping(): UnavailableError {
  return new UnavailableError('the server is stopping; nothing was acquired', { hint: 'repeat the request' })
}
