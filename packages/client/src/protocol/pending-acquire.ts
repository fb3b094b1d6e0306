import {
  type Ack,
  AcquireTimeoutError,
  type Command,
  type Grant,
  type LeaseholdError,
  NotHolderError,
  type Result,
} from '@leasehold/core'
import type { AcquireOptions } from '../engine.js'
import { abortedError } from '../race.js'
import { errorOfRefusal, type OpenRequest } from './request.js'
import type { Wire } from './wire.js'

export interface PendingAcquireOptions {
  readonly number: number
  readonly wire: Wire
  readonly options: AcquireOptions
  readonly resolve: (grant: Grant) => void
  readonly reject: (error: LeaseholdError) => void
  /** Cancels the request at the service and rejects. */
  readonly giveUp: (error: LeaseholdError) => void
  readonly command: (number: number, ack: Ack) => Command
}

/** How much longer than the wait a connected service may take to say that the wait is over: its clock decides. */
const GRACE_MS = 500
/** A wait of 0 needs an answer all the same; this long for one. */
const ANSWER_MS = 5_000

/**
 * An acquire between its sending and its end.
 *
 * - *sent*: no answer yet. *queued*: the service has it in its queue.
 * - ends by the answer or a push of the service; by its signal; or, when the service says nothing, by a bound of its own:
 *   the wait, and a grace while connected.
 */
export class PendingAcquire implements OpenRequest {
  readonly number: number
  readonly options: PendingAcquireOptions
  sent = false
  #queued = false
  #cancelTimer: () => void = () => {}
  readonly #onAbort: () => void

  constructor(options: PendingAcquireOptions) {
    this.options = options
    this.number = options.number
    const { signal } = options.options
    this.#onAbort = () => options.giveUp(abortedError('acquire', signal as AbortSignal))
  }

  /** Watches the signal and the wait. */
  start(): void {
    const { signal, waitMs } = this.options.options
    if (signal?.aborted) return this.#onAbort()
    signal?.addEventListener('abort', this.#onAbort)
    this.#cancelTimer = this.options.wire.after(waitMs === 0 ? ANSWER_MS : waitMs, () => this.#waitIsOver(), true)
  }

  stop(): void {
    this.#cancelTimer()
    this.options.options.signal?.removeEventListener('abort', this.#onAbort)
  }

  command(ack: Ack): Command {
    return this.options.command(this.number, ack)
  }

  answer(result: Result): boolean {
    if (result.kind === 'queued') {
      this.#queued = true
      return false
    }
    this.stop()
    if (result.kind === 'granted') this.options.resolve(result.grant)
    else if (result.kind === 'refused') this.options.reject(errorOfRefusal(result))
    else {
      const reason = result.kind === 'ended' ? result.reason : result.kind
      this.options.reject(new NotHolderError(`it was granted, and ended (${reason}) before the answer arrived`))
    }
    return true
  }

  ended(error: LeaseholdError): void {
    this.stop()
    this.options.reject(error)
  }

  #waitIsOver(): void {
    const { wire } = this.options
    if (!wire.connected) return this.#timeOut()
    this.#cancelTimer = wire.after(GRACE_MS, () => this.#timeOut(), true)
  }

  /** The service knew of the request, so it was not granted in time; or nothing is known at all: it was unreachable. */
  #timeOut(): void {
    const { wire, options, giveUp } = this.options
    const text = `no answer within ${options.waitMs} ms`
    if (!this.#queued) return giveUp(wire.unavailable(text))
    giveUp(new AcquireTimeoutError(`not acquired within ${options.waitMs} ms`, { cause: wire.lastError }))
  }
}
