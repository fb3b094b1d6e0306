import { AbortedError, type Ack, type Grant, type LeaseholdError, type Result } from '@leasehold/core'
import type { AcquireOptions, EngineGrant } from '../engine.js'
import { DeadlineTimer } from './deadline-timer.js'
import type { DeduplicatedRequest } from './deduplicated-request.js'
import type { EpochIds } from './epoch-ids.js'
import { IdempotentCalls, NO_NUMBER } from './idempotent-calls.js'
import { type AcquireHost, PendingAcquire } from './pending-acquire.js'
import { errorOfRefusal } from './refusals.js'
import { RequestWindow } from './request-window.js'
import { type CallHost, type CallTerms, CancelRequest, SessionCall } from './session-call.js'
import type { SessionIdentity, Wire } from './wire.js'

/**
 * Request numbers stop here, except for cancels: the service refuses acquires and writes at 512 above the lowest open number,
 * and everything at 1 024. So a number is left to cancel each acquire, however long a waiter keeps the lowest one open.
 */
const WINDOW_REQUESTS = 500
/** Pause before a release or a cancel is sent again that was refused for want of room. */
const RETRY_PAUSE_MS = 100

/** What the requests of a session need from it. */
export interface SessionRequestsOptions {
  readonly wire: Wire
  readonly identity: SessionIdentity
  readonly ids: EpochIds
  /** Whether the service has bound the session to the present connection. */
  readonly isAttached: () => boolean
  /** The service reported that the session has ended. */
  readonly expired: (error: LeaseholdError) => void
}

/**
 * The open requests of a session: their numbers, their sendings and repeats, their answers and their deadlines. Ends with the
 * session; later answers are dropped.
 */
export class SessionRequests implements CallHost, AcquireHost {
  readonly wire: Wire
  readonly identity: SessionIdentity
  readonly #options: SessionRequestsOptions
  readonly #open = new RequestWindow<DeduplicatedRequest>()
  readonly #idempotent: IdempotentCalls
  readonly #deadlines: DeadlineTimer
  #ended = false

  constructor(options: SessionRequestsOptions) {
    const { wire } = options
    this.wire = wire
    this.identity = options.identity
    this.#options = options
    this.#deadlines = new DeadlineTimer(wire, () => this.#checkDeadlines())
    this.#idempotent = new IdempotentCalls({
      now: () => wire.now(),
      send: (call) => {
        this.#deadlines.schedule(call.dueAt)
        if (options.isAttached()) this.#send(call)
      },
    })
  }

  /** No request numbers are left for acquires and writes. */
  get congested(): boolean {
    return this.#open.width > WINDOW_REQUESTS
  }

  /** Requests without a final answer. */
  get size(): number {
    return this.#open.size + this.#idempotent.size
  }

  acquire(options: AcquireOptions): Promise<EngineGrant> {
    return new Promise((resolve, reject) => {
      const pending = new PendingAcquire(this, this.#open.take(), options, resolve, reject)
      this.#submit(pending)
      pending.start()
      this.#deadlines.schedule(pending.dueAt)
    })
  }

  cancelAcquires(why: string): void {
    for (const request of this.#open.values()) {
      if (request instanceof PendingAcquire) this.abandonAcquire(request, new AbortedError(why))
    }
  }

  /** Sends a call until it is answered. `idempotent`: without a request number. */
  call(
    terms: CallTerms,
    resolve: (result: Result) => void,
    reject: (error: LeaseholdError) => void,
    idempotent = false,
  ): void {
    const number = idempotent ? NO_NUMBER : this.#open.take()
    const call = new SessionCall(this, number, terms, resolve, reject)
    this.#deadlines.schedule(call.dueAt)
    if (!idempotent) return this.#submit(call)
    this.wire.ensureConnected()
    this.#idempotent.add(call)
  }

  // --- Events of the session ---

  /** The connection is gone, and with it perhaps what was acknowledged on it. */
  detached(): void {
    this.#open.restoreAllAcks()
  }

  /** Sends everything open on a new connection. */
  resendAll(): void {
    for (const request of this.#open.values()) this.#send(request)
    this.#idempotent.resendAll()
  }

  /** Rejects everything open; nothing is sent or accepted from now on. */
  end(error: LeaseholdError): void {
    this.#ended = true
    this.#deadlines.stop()
    for (const request of this.#open.values()) {
      this.#open.drop(request.number)
      request.ended(error)
    }
    for (const call of this.#idempotent.values()) call.ended(error)
  }

  /** A pushed answer. It means nothing for an acquire that was abandoned: `cancel` undoes the grant. */
  pushedAnswer(number: number, result: Result): void {
    const pending = this.#open.get(number)
    if (pending instanceof PendingAcquire) this.#resolveAnswer(pending, result)
  }

  /** What the next renewal acknowledges; undefined: nothing new. */
  takeUnreportedAck(): Ack | undefined {
    return this.#open.hasUnreported ? this.#open.takeAck() : undefined
  }

  restoreAck(ack: Ack): void {
    this.#open.restoreAck(ack)
  }

  // --- Events of the requests ---

  answered(request: DeduplicatedRequest, result: Result): void {
    if (result.kind === 'refused' && request.lastAck) this.#open.restoreAck(request.lastAck)
    this.#resolveAnswer(request, result)
  }

  granted(grant: Grant, pending: PendingAcquire): void {
    pending.resolve(this.#options.ids.grant(grant))
  }

  retryLater(request: DeduplicatedRequest, result: Result): boolean {
    if (result.kind !== 'refused' || (result.code !== 'limit' && result.code !== 'storage')) return false
    this.wire.after(RETRY_PAUSE_MS, () => {
      if (this.#isOpen(request) && this.#options.isAttached()) this.#send(request)
    })
    return true
  }

  abandonRequest(request: DeduplicatedRequest): void {
    this.#close(request)
  }

  /**
   * Rejects an acquire. `cancel` makes sure at the service that it has no effect: it leaves the queue, or its hold is
   * released, or it can never take effect. Both numbers stay open until the cancel is answered.
   */
  abandonAcquire(pending: PendingAcquire, error: LeaseholdError): void {
    if (this.#open.get(pending.number) !== pending) return
    pending.stop()
    pending.reject(error)
    if (!pending.sent) return this.#closeNumber(pending.number)
    this.#open.drop(pending.number)
    this.#cancel(pending.number)
  }

  #cancel(target: number): void {
    this.#submit(new CancelRequest(this, this.#open.take(), target, () => this.#closeNumber(target)))
  }

  #submit(request: DeduplicatedRequest): void {
    this.#open.set(request.number, request)
    this.wire.ensureConnected()
    if (this.#options.isAttached()) this.#send(request)
  }

  #send(request: DeduplicatedRequest): void {
    if (!this.wire.connected) return
    const ack = this.#open.takeAck()
    request.sendings++
    request.lastAck = ack
    this.wire.command(request.command(ack), request)
  }

  #resolveAnswer(request: DeduplicatedRequest, result: Result): void {
    if (this.#ended || !this.#isOpen(request)) return
    if (result.kind === 'refused' && result.code === 'session-ended') {
      return this.#options.expired(errorOfRefusal(result))
    }
    if (request.answer(result)) this.#close(request)
  }

  #isOpen(request: DeduplicatedRequest): boolean {
    if (request.number !== NO_NUMBER) return this.#open.get(request.number) === request
    return this.#idempotent.has(request as SessionCall)
  }

  #close(request: DeduplicatedRequest): void {
    if (request.number !== NO_NUMBER) return this.#closeNumber(request.number)
    this.#idempotent.close(request as SessionCall)
    if (this.size === 0) this.#deadlines.stop()
  }

  /** The number will not be used again. */
  #closeNumber(number: number): void {
    this.#open.answered(number)
    if (this.size === 0) this.#deadlines.stop()
  }

  #checkDeadlines(): void {
    const now = this.wire.now()
    for (const request of this.#open.values()) if (request.dueAt <= now) request.overdue()
    for (const call of this.#idempotent.values()) {
      if (call.dueAt <= now && !this.#idempotent.postpone(call)) call.overdue()
    }
    if (this.#ended) return
    let dueAt = Number.POSITIVE_INFINITY
    for (const request of this.#open.values()) dueAt = Math.min(dueAt, request.dueAt)
    for (const call of this.#idempotent.values()) dueAt = Math.min(dueAt, call.dueAt)
    this.#deadlines.schedule(dueAt)
  }
}
