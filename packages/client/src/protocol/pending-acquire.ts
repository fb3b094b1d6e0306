import {
  type Ack,
  AcquireTimeoutError,
  type Command,
  type Grant,
  type LeaseholdError,
  type Millis,
  NotHolderError,
  type Result,
  WAIT_FOREVER,
} from '@leasehold/core'
import { abortedError } from '../async/bounded-wait.js'
import type { AcquireOptions, EngineGrant } from '../engine.js'
import { DeduplicatedRequest, type RequestHost } from './deduplicated-request.js'
import { errorOfRefusal } from './refusals.js'

/** What an acquire needs from its session. */
export interface AcquireHost extends RequestHost {
  granted(grant: Grant, pending: PendingAcquire): void
  /** Cancels the request at the service and rejects. */
  abandonAcquire(pending: PendingAcquire, error: LeaseholdError): void
}

/** How much longer than the wait a connected service may take to report the timeout: its clock decides. */
const GRACE_MS = 500
/** How long an acquire with a wait of 0 waits for its answer. */
const ANSWER_MS = 5_000

/**
 * An acquire between its sending and its end.
 *
 * - *sent*: no answer yet. *queued*: in the service's queue. *late*: the wait has ended, and the grace runs.
 * - ends with an answer or a push of the service, or with its signal; when the service is silent, after the wait, and the
 *   grace while connected.
 */
export class PendingAcquire extends DeduplicatedRequest {
  declare readonly host: AcquireHost
  #queued = false
  #late = false
  #onAbort: (() => void) | undefined

  constructor(
    host: AcquireHost,
    number: number,
    readonly options: AcquireOptions,
    readonly resolve: (grant: EngineGrant) => void,
    readonly reject: (error: LeaseholdError) => void,
  ) {
    super(host, number)
  }

  /** Listens to the signal and starts the wait. */
  start(): void {
    const { signal, waitMs } = this.options
    if (signal) {
      this.#onAbort = () => this.host.abandonAcquire(this, abortedError('acquire', signal))
      if (signal.aborted) return this.#onAbort()
      signal.addEventListener('abort', this.#onAbort)
    }
    if (waitMs !== Number.POSITIVE_INFINITY) this.dueAt = this.host.wire.now() + (waitMs === 0 ? ANSWER_MS : waitMs)
  }

  stop(): void {
    if (this.#onAbort) this.options.signal?.removeEventListener('abort', this.#onAbort)
  }

  command(ack: Ack): Command {
    const { locks, waitMs, lockDelayMs, persistent, portable, data } = this.options
    return {
      kind: 'acquire',
      session: this.host.identity.session,
      request: this.number,
      ack,
      locks,
      waitMs: waitMs === Number.POSITIVE_INFINITY ? WAIT_FOREVER : (waitMs as Millis),
      lockDelayMs: lockDelayMs as Millis,
      persistent,
      portable,
      data,
    }
  }

  answer(result: Result): boolean {
    if (result.kind === 'queued') {
      this.#queued = true
      return false
    }
    if (result.kind === 'refused' && this.isOutcomeOpen(result)) {
      this.host.abandonAcquire(this, errorOfRefusal(result))
      return false
    }
    this.stop()
    if (result.kind === 'granted') this.host.granted(result.grant, this)
    else if (result.kind === 'refused') this.reject(errorOfRefusal(result))
    else {
      const reason = result.kind === 'ended' ? result.reason : result.kind
      this.reject(new NotHolderError(`it was granted, and ended (${reason}) before the answer arrived`))
    }
    return true
  }

  ended(error: LeaseholdError): void {
    this.stop()
    this.reject(error)
  }

  overdue(): void {
    const { wire } = this.host
    if (this.#late || !wire.connected) return this.#timeOut()
    this.#late = true
    this.dueAt = wire.now() + GRACE_MS
  }

  /** A queued request timed out; without any answer the service was unreachable. */
  #timeOut(): void {
    const { host, options } = this
    const text = `no answer within ${options.waitMs} ms`
    if (!this.#queued) return host.abandonAcquire(this, host.wire.unavailable(text))
    const cause = host.wire.lastError
    host.abandonAcquire(this, new AcquireTimeoutError(`not acquired within ${options.waitMs} ms`, { cause }))
  }
}
