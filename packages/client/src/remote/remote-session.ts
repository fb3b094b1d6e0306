import type { EndReason, LeaseholdError, LostReason } from '@leasehold/core'
import { abortedError } from '../async/bounded-wait.js'
import { type SessionEndReason, sessionAbandonedError, sessionClosedError, sessionEndedError } from '../end-reasons.js'
import {
  type AcquireOptions,
  type EngineGrant,
  type EngineLease,
  type EngineSession,
  type EngineSessionListener,
  NO_LISTENER,
} from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { windowFullError } from '../protocol/refusals.js'
import type { SharedLease } from './shared-lease.js'
import type { SessionCalls, SessionMethod, SessionNotice, SessionNotices } from './thread-protocol.js'

/** What a session needs from its engine. */
export interface RemoteSessionHost {
  readonly platform: ClientPlatform
  sharedClockMs(): number
  /** Calls a method of the session in the other thread. `signal` aborts the call there. */
  callSession<Method extends SessionMethod>(
    session: number,
    method: Method,
    args: Parameters<SessionCalls[Method]>,
    signal?: AbortSignal,
  ): ReturnType<SessionCalls[Method]>
  notifySession<Notice extends SessionNotice>(
    session: number,
    notice: Notice,
    args: Parameters<SessionNotices[Notice]>,
  ): void
  forget(session: RemoteSession): void
}

/** Open requests of this thread in one session; the other thread counts the request numbers. */
const REQUESTS_MAX = 450

/** A session whose connection and renewals live in another thread. */
export class RemoteSession implements EngineSession {
  readonly number: number
  readonly id: bigint
  readonly ttlMs: number
  readonly lease: EngineLease
  listener: EngineSessionListener = NO_LISTENER
  readonly #host: RemoteSessionHost
  readonly #shared: SharedLease
  #open = 0
  #ended: LeaseholdError | undefined

  constructor(host: RemoteSessionHost, opened: { number: number; id: bigint; ttlMs: number }, shared: SharedLease) {
    this.number = opened.number
    this.id = opened.id
    this.ttlMs = opened.ttlMs
    this.#host = host
    this.#shared = shared
    const { platform } = host
    this.lease = {
      get renewals(): bigint {
        return shared.renewals
      },
      sinceAcknowledgedMs: () => shared.sinceAcknowledgedMs(host.sharedClockMs(), platform.wallMs()),
      get ended(): LostReason | undefined {
        return shared.ended
      },
      limit: (limitMs) => host.notifySession(opened.number, 'limit', [limitMs]),
      stopRenewing: () => host.notifySession(opened.number, 'stopRenewing', []),
    }
  }

  get congested(): boolean {
    return this.#shared.congested || this.#open >= REQUESTS_MAX
  }

  renew(timeoutMs: number): Promise<void> {
    return this.#call('renew', [timeoutMs])
  }

  async acquire(options: AcquireOptions): Promise<EngineGrant> {
    if (!this.#ended && this.congested) throw windowFullError()
    const { signal, ...rest } = options
    try {
      return await this.#call('acquire', [rest, signal !== undefined], signal)
    } catch (error) {
      if (signal?.aborted && (error as LeaseholdError).code === 'aborted') throw abortedError('acquire', signal)
      // The other thread died, and the session with it: the acquire is retried in another session.
      if (this.#ended !== undefined && (error as LeaseholdError).code === 'unreachable') throw this.#ended
      throw error
    }
  }

  cancelAcquires(why: string): void {
    this.#host.notifySession(this.number, 'cancelAcquires', [why])
  }

  adopt(options: Parameters<EngineSession['adopt']>[0]): Promise<EngineGrant> {
    return this.#call('adopt', [options])
  }

  release(hold: bigint, options: Parameters<EngineSession['release']>[1]): ReturnType<EngineSession['release']> {
    // With its own secret a hold can be released after its session.
    const outside = this.#ended !== undefined && options.secret !== undefined
    if (outside) return this.#host.callSession(this.number, 'release', [hold, options])
    return this.#call('release', [hold, options])
  }

  put(options: Parameters<EngineSession['put']>[0]): Promise<bigint> {
    return this.#call('put', [options])
  }

  delete(options: Parameters<EngineSession['delete']>[0]): Promise<void> {
    return this.#call('delete', [options])
  }

  async close(timeoutMs: number): Promise<void> {
    if (this.#ended) return
    try {
      await this.#call('close', [timeoutMs])
    } finally {
      this.end(sessionClosedError())
    }
  }

  abandon(): void {
    if (!this.#ended) this.#host.notifySession(this.number, 'abandon', [])
    this.end(sessionAbandonedError())
  }

  holdEnded(hold: bigint, reason: EndReason, text: string): void {
    if (!this.#ended) this.listener.holdEnded(hold, reason, text)
  }

  sessionEnded(reason: SessionEndReason): void {
    const { listener } = this
    this.end(sessionEndedError(reason))
    listener.sessionEnded(reason)
  }

  /** Nothing is sent or accepted from now on. Open calls are answered by the other thread, or fail when it dies. */
  end(error: LeaseholdError): void {
    if (this.#ended) return
    this.#ended = error
    this.listener = NO_LISTENER
    this.#host.forget(this)
  }

  async #call<Method extends SessionMethod>(
    method: Method,
    args: Parameters<SessionCalls[Method]>,
    signal?: AbortSignal,
  ): Promise<Awaited<ReturnType<SessionCalls[Method]>>> {
    if (this.#ended) throw this.#ended
    this.#open++
    try {
      return await this.#host.callSession(this.number, method, args, signal)
    } finally {
      this.#open--
    }
  }
}
