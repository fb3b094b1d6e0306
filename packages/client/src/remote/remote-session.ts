import { type EndReason, type LostReason, type LeaseholdError, SessionEndedError } from '@leasehold/core'
import type { AcquireOptions, EngineGrant, EngineLease, EngineSession, EngineSessionListener } from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { windowFullError } from '../protocol/deduplicated-request.js'
import { abortedError } from '../async/bounded-wait.js'
import type { SharedLease } from './shared-lease.js'

/** What a session needs from its engine. */
export interface Caller {
  readonly platform: ClientPlatform
  sharedClockMs(): number
  call<T>(method: string, args: readonly unknown[], options: CallOptions): Promise<T>
  tell(method: string, session: number, args: readonly unknown[]): void
  forget(session: RemoteSession): void
}

export interface CallOptions {
  readonly session?: number
  readonly signal?: AbortSignal | undefined
}

/** Requests of this thread that may be open at once in one session; the other thread counts what the service has to keep. */
const REQUESTS_MAX = 450

const NO_LISTENER: EngineSessionListener = { holdEnded: () => {}, sessionEnded: () => {} }

/** A session whose connection and renewals live in another thread. */
export class RemoteSession implements EngineSession {
  readonly number: number
  readonly id: bigint
  readonly ttlMs: number
  readonly lease: EngineLease
  listener: EngineSessionListener = NO_LISTENER
  readonly #caller: Caller
  readonly #shared: SharedLease
  #open = 0
  #ended: LeaseholdError | undefined

  constructor(caller: Caller, opened: { number: number; id: bigint; ttlMs: number }, shared: SharedLease) {
    this.number = opened.number
    this.id = opened.id
    this.ttlMs = opened.ttlMs
    this.#caller = caller
    this.#shared = shared
    const { platform } = caller
    this.lease = {
      get renewals(): bigint {
        return shared.renewals
      },
      sinceAcknowledgedMs: () => shared.sinceAcknowledgedMs(caller.sharedClockMs(), platform.wallMs()),
      get ended(): LostReason | undefined {
        return shared.ended
      },
      limit: (limitMs) => caller.tell('limit', opened.number, [limitMs]),
      stopRenewing: () => caller.tell('stopRenewing', opened.number, []),
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
      // The other thread has died, and the session with it: the wait may go on in another one.
      if (this.#ended !== undefined && (error as LeaseholdError).code === 'unreachable') throw this.#ended
      throw error
    }
  }

  cancelAcquires(why: string): void {
    this.#caller.tell('cancelAcquires', this.number, [why])
  }

  adopt(options: Parameters<EngineSession['adopt']>[0]): Promise<EngineGrant> {
    return this.#call('adopt', [options])
  }

  release(hold: bigint, options: Parameters<EngineSession['release']>[1]): ReturnType<EngineSession['release']> {
    // With its own secret a hold can be released after its session.
    const outside = this.#ended !== undefined && options.secret !== undefined
    if (outside) return this.#caller.call('release', [hold, options], { session: this.number })
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
      this.end(new SessionEndedError('the session was closed by its owner'))
    }
  }

  abandon(): void {
    if (!this.#ended) this.#caller.tell('abandon', this.number, [])
    this.end(new SessionEndedError('the session was abandoned: its deadline has passed here'))
  }

  holdEnded(hold: bigint, reason: EndReason, text: string): void {
    if (!this.#ended) this.listener.holdEnded(hold, reason, text)
  }

  sessionEnded(reason: EndReason | 'epoch-changed'): void {
    const { listener } = this
    this.end(new SessionEndedError(`the service has ended the session (${reason})`))
    listener.sessionEnded(reason)
  }

  /** Nothing is sent or accepted from now on. What is open is answered by the other thread, or with its death. */
  end(error: LeaseholdError): void {
    if (this.#ended) return
    this.#ended = error
    this.listener = NO_LISTENER
    this.#caller.forget(this)
  }

  async #call<T>(method: string, args: readonly unknown[], signal?: AbortSignal): Promise<T> {
    if (this.#ended) throw this.#ended
    this.#open++
    try {
      return await this.#caller.call<T>(method, args, { session: this.number, signal })
    } finally {
      this.#open--
    }
  }
}
