import {
  AbortedError,
  type Ack,
  type Change,
  type Command,
  type EndReason,
  CompactingSet,
  type Grant,
  type Hex128,
  type LeaseholdError,
  NotHolderError,
  type Result,
  SessionEndedError,
  type SessionId,
  tokenOf,
} from '@leasehold/core'
import type { AcquireOptions, EngineGrant, EngineSession, EngineSessionListener } from '../engine.js'
import { ChangeLog } from './change-log.js'
import { EpochIds } from './epoch-ids.js'
import { type CallTerms, CancelRequest, SessionCall } from './session-call.js'
import { PendingAcquire } from './pending-acquire.js'
import {
  errorOfRefusal,
  type DeduplicatedRequest,
  type Renewal,
  windowFullError,
  unexpected,
} from './deduplicated-request.js'
import { NO_NUMBER, IdempotentCalls } from './idempotent-calls.js'
import type { Wire } from './wire.js'
import { RequestWindow } from './request-window.js'

export interface SessionIdentity {
  readonly session: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  readonly epoch: number
}

/**
 * Numbers stop here, but for cancels: the service refuses acquires and writes at 512 above the lowest open one, and anything at
 * 1 024. So there is a number left to cancel each acquire with, however long a waiter keeps the lowest one open.
 */
const WINDOW_REQUESTS = 500

const NO_LISTENER: EngineSessionListener = { holdEnded: () => {}, sessionEnded: () => {} }

/** A service that is there answers a ping within this; less when there is not so much time left. */
const PROBE_MS = 500
/** Pause before something that must be done is sent again after a refusal for want of room. */
const AGAIN_MS = 100

/**
 * A session over the stream.
 *
 * - *attached* or not: its messages go out only on a connection that the service has bound to it. After a reconnect it is
 *   attached with its secret, then everything that is open is sent again.
 * - *ended*: by the service, by `close`, or abandoned. Open requests are answered with an error, later answers dropped.
 */
export class ProtocolSession implements EngineSession {
  readonly id: bigint
  readonly ttlMs: number
  readonly identity: SessionIdentity
  listener: EngineSessionListener = NO_LISTENER
  readonly wire: Wire
  readonly #ids: EpochIds
  readonly #open = new RequestWindow<DeduplicatedRequest>()
  readonly #changes = new ChangeLog()
  readonly #idempotent: IdempotentCalls
  /** When the open requests are looked through for those that are overdue, by the clock of the wire. */
  #deadlineCheckAt = Number.POSITIVE_INFINITY
  #cancelDeadlineTimer: () => void = () => {}
  readonly #renewals = new CompactingSet<Renewal>()
  #attached = true
  #closing: { send: () => void; done: (result: Result) => void } | undefined
  #ended: LeaseholdError | undefined

  constructor(wire: Wire, identity: SessionIdentity) {
    this.wire = wire
    this.identity = identity
    this.#ids = new EpochIds(identity.epoch)
    this.ttlMs = identity.ttlMs
    this.id = tokenOf(identity.epoch, identity.session)
    this.#idempotent = new IdempotentCalls({
      now: () => wire.now(),
      send: (call) => {
        this.#scheduleDeadlineCheck(call.dueAt)
        if (this.#attached) this.#send(call)
      },
    })
  }

  get congested(): boolean {
    return this.#open.width > WINDOW_REQUESTS
  }

  /** Requests without a final answer: for tests that count what is left over. */
  get openRequests(): number {
    return this.#open.size + this.#idempotent.size + this.#renewals.size
  }

  renew(timeoutMs: number): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended)
    const sentAt = this.wire.now()
    if (this.#renewals.size > 0) {
      this.wire.probe(this.wire.unavailable('a renewal has no answer'), Math.min(PROBE_MS, timeoutMs / 2))
    }
    return new Promise((resolve, reject) => {
      const renewal: Renewal = {
        sentAt,
        resolve: () => this.#forgetRenewal(renewal, resolve),
        reject: (error) => this.#forgetRenewal(renewal, () => reject(error)),
        cancel: this.wire.after(timeoutMs, () => {
          const error = this.wire.unavailable(`a renewal was not acknowledged within ${Math.round(timeoutMs)} ms`)
          renewal.reject(error)
        }),
      }
      this.#renewals.add(renewal)
      this.#sendRenewal(renewal)
    })
  }

  acquire(options: AcquireOptions): Promise<EngineGrant> {
    if (this.#ended) return Promise.reject(this.#ended)
    if (this.congested) return Promise.reject(windowFullError())
    return new Promise((resolve, reject) => {
      const pending = new PendingAcquire(this, this.#open.take(), options, resolve, reject)
      this.#submit(pending)
      pending.start()
      this.#scheduleDeadlineCheck(pending.dueAt)
    })
  }

  cancelAcquires(why: string): void {
    for (const request of this.#open.values()) {
      if (request instanceof PendingAcquire) this.abandonAcquire(request, new AbortedError(why))
    }
  }

  async adopt(options: { id: bigint; secret: string; timeoutMs: number }): Promise<EngineGrant> {
    const hold = this.#ids.serial(options.id, 'hold')
    this.#checkRoom()
    const result = await this.#request({
      what: 'adoption',
      timeoutMs: options.timeoutMs,
      command: (request, ack) => ({
        kind: 'adopt',
        ...this.#numbered(request, ack),
        hold,
        secret: options.secret,
        newSecret: NO_SECRET,
      }),
      // Nobody waits for it any more: it must not stay behind without an owner.
      late: (late) => {
        if (late.kind !== 'granted') return
        const grant = this.#ids.grant(late.grant)
        const secret = grant.secret === undefined ? {} : { secret: grant.secret }
        this.release(grant.id, { timeoutMs: this.ttlMs, ...secret }).catch(() => {})
      },
    })
    if (result.kind === 'granted') return this.#ids.grant(result.grant)
    throw unexpected('adopt', result)
  }

  release(id: bigint, options: { timeoutMs: number; secret?: string }): Promise<{ released: boolean }> {
    const { secret, timeoutMs } = options
    const { session } = this.identity
    return new Promise((resolve, reject) => {
      const hold = this.#ids.serial(id, 'hold')
      const sends = { count: 0 }
      const answered = (result: Result): void => {
        if (result.kind === 'released') resolve(RELEASED)
        else reject(unexpected('release', result))
      }
      const failed = (error: unknown): void => {
        // The answer to the first sending was lost: it is gone because we have given it back.
        if (error instanceof NotHolderError) resolve({ released: sends.count > 1 })
        else reject(error)
      }
      if (this.#ended && secret !== undefined) {
        this.wire.call('release', timeoutMs, { kind: 'release', hold, secret }, sends).then(answered, failed)
        return
      }
      const extra = secret === undefined ? NOTHING : { secret }
      const command = (request: number, ack: Ack): Command => {
        if (request !== NO_NUMBER) return { kind: 'release', session, request, ack, hold, ...extra }
        sends.count++
        return { kind: 'release', session, hold, ...extra }
      }
      // Nobody else gives it back: as long as the session lives, so would the hold.
      const terms: CallTerms = { what: 'release', timeoutMs, command, late: NOTHING_TO_DO, unsent: 'keep' }
      // An id is never used again, so a release can do without a number while a waiter holds up the window.
      this.#call(terms, answered, failed, this.congested)
    })
  }

  async put(options: Parameters<EngineSession['put']>[0]): Promise<bigint> {
    const { key, value, ifVersion, timeoutMs } = options
    const terms = { ...(ifVersion === undefined ? {} : { ifVersion }), ...this.#ids.fence(options.fence) }
    this.#checkRoom()
    const result = await this.#request({
      what: 'put',
      timeoutMs,
      command: (request, ack) => ({ kind: 'put', ...this.#numbered(request, ack), key, value, ...terms }),
    })
    if (result.kind === 'put') return result.version
    throw unexpected('put', result)
  }

  async delete(options: Parameters<EngineSession['delete']>[0]): Promise<void> {
    const { key, ifVersion, timeoutMs } = options
    const terms = { ...(ifVersion === undefined ? {} : { ifVersion }), ...this.#ids.fence(options.fence) }
    this.#checkRoom()
    const result = await this.#request({
      what: 'delete',
      timeoutMs,
      command: (request, ack) => ({ kind: 'delete', ...this.#numbered(request, ack), key, ...terms }),
    })
    if (result.kind !== 'deleted') throw unexpected('delete', result)
  }

  async close(timeoutMs: number): Promise<void> {
    if (this.#ended) return
    const close: Command = { kind: 'closeSession', session: this.identity.session, by: 'owner', reason: '' }
    const answer = new Promise<Result>((resolve, reject) => {
      const cancel = this.wire.after(timeoutMs, () => reject(this.wire.unavailable('the session was not closed')))
      this.#closing = {
        send: () => this.wire.command(close, { answered: (result) => this.#closing?.done(result) }),
        done: (result) => {
          cancel()
          resolve(result)
        },
      }
    })
    this.wire.ensureConnected()
    if (this.#attached) this.#closing?.send()
    try {
      const result = await answer
      if (result.kind === 'refused' && result.code !== 'session-ended') throw errorOfRefusal(result)
    } finally {
      this.#closing = undefined
      this.end(new SessionEndedError('the session was closed by its owner'))
    }
  }

  abandon(): void {
    this.end(new SessionEndedError('the session was abandoned: its deadline has passed here'))
  }

  // --- Events of the connection ---

  /** The connection is gone. */
  detached(): void {
    if (!this.#attached) return
    this.#attached = false
    this.#open.restoreAllAcks()
    this.#changes.reattached()
  }

  /** The service has bound the session to the present connection: everything open goes out again. */
  attached(): void {
    if (this.#ended || this.#attached) return
    this.#attached = true
    if (this.#renewals.size === 0) this.#sendCatchUp()
    for (const renewal of [...this.#renewals]) this.#sendRenewal(renewal)
    for (const request of this.#open.values()) this.#send(request)
    this.#idempotent.resendAll()
    this.#closing?.send()
  }

  pushed(change: Change): void {
    if (!this.#ended && this.#changes.pushed(change)) this.#apply(change)
  }

  /** The service says that the session is over. */
  endedByService(reason: EndReason | 'epoch-changed', error: LeaseholdError): void {
    if (this.#ended) return
    const { listener } = this
    this.end(error)
    listener.sessionEnded(reason)
  }

  /** Everything that is open gets `error`; nothing is sent or accepted from now on. */
  end(error: LeaseholdError): void {
    if (this.#ended) return
    this.#ended = error
    this.listener = NO_LISTENER
    // A closing session was asked to end; its holder has stopped already.
    this.#closing?.done({ kind: 'closed' })
    this.wire.forget(this)
    this.#cancelDeadlineTimer()
    for (const request of this.#open.values()) {
      this.#open.drop(request.number)
      request.ended(error)
    }
    for (const call of this.#idempotent.values()) call.ended(error)
    for (const renewal of [...this.#renewals]) renewal.reject(error)
  }

  // --- Numbered requests ---

  #request(terms: CallTerms): Promise<Result> {
    return new Promise((resolve, reject) => this.#call(terms, resolve, reject))
  }

  #call(
    terms: CallTerms,
    resolve: (result: Result) => void,
    reject: (error: LeaseholdError) => void,
    unnumbered = false,
  ): void {
    if (this.#ended) return reject(this.#ended)
    const number = unnumbered ? NO_NUMBER : this.#open.take()
    const call = new SessionCall(this, number, terms, resolve, reject)
    this.#scheduleDeadlineCheck(call.dueAt)
    if (!unnumbered) return this.#submit(call)
    this.wire.ensureConnected()
    this.#idempotent.add(call)
  }

  #submit(request: DeduplicatedRequest): void {
    this.#open.set(request.number, request)
    this.wire.ensureConnected()
    if (this.#attached) this.#send(request)
  }

  #send(request: DeduplicatedRequest): void {
    if (!this.wire.connected) return
    const ack = this.#open.takeAck()
    request.sendings++
    request.lastAck = ack
    this.wire.command(request.command(ack), request)
  }

  /** A refusal for want of room, of something that must be done: it is sent again after a pause, with its number. */
  retryLater(request: DeduplicatedRequest, result: Result): boolean {
    if (result.kind !== 'refused' || (result.code !== 'limit' && result.code !== 'storage')) return false
    this.wire.after(AGAIN_MS, () => {
      if (this.#isOpen(request) && this.#attached) this.#send(request)
    })
    return true
  }

  answered(request: DeduplicatedRequest, result: Result): void {
    if (result.kind === 'refused' && request.lastAck) this.#open.restoreAck(request.lastAck)
    this.#settle(request, result)
  }

  #settle(request: DeduplicatedRequest, result: Result): void {
    if (this.#ended || !this.#isOpen(request)) return
    if (result.kind === 'refused' && result.code === 'session-ended') {
      return this.endedByService('expired', errorOfRefusal(result))
    }
    if (request.answer(result)) this.#close(request)
  }

  #isOpen(request: DeduplicatedRequest): boolean {
    if (request.number !== NO_NUMBER) return this.#open.get(request.number) === request
    return this.#idempotent.has(request as SessionCall)
  }

  granted(grant: Grant, pending: PendingAcquire): void {
    pending.resolve(this.#ids.grant(grant))
  }

  abandonRequest(request: DeduplicatedRequest): void {
    this.#close(request)
  }

  #close(request: DeduplicatedRequest): void {
    if (request.number !== NO_NUMBER) return this.#closeNumber(request.number)
    this.#idempotent.close(request as SessionCall)
    if (this.#open.size + this.#idempotent.size === 0) this.#cancelDeadlineCheck()
  }

  /** The number will not be used again. */
  #closeNumber(number: number): void {
    this.#open.answered(number)
    if (this.#open.size + this.#idempotent.size === 0) this.#cancelDeadlineCheck()
  }

  /**
   * Gives an acquire up. `cancel` makes sure at the service that it has no effect: it leaves the queue, or its hold is
   * released, or it can never take effect. Both numbers stay open until that is answered.
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

  // --- Those who wait too long ---

  /** One timer for all open requests: most are answered long before they are due. */
  #scheduleDeadlineCheck(dueAt: number): void {
    if (dueAt >= this.#deadlineCheckAt) return
    this.#cancelDeadlineTimer()
    this.#deadlineCheckAt = dueAt
    this.#cancelDeadlineTimer = this.wire.after(dueAt - this.wire.now(), () => this.#checkDeadlines(), true)
  }

  #cancelDeadlineCheck(): void {
    if (this.#deadlineCheckAt === Number.POSITIVE_INFINITY) return
    this.#cancelDeadlineTimer()
    this.#deadlineCheckAt = Number.POSITIVE_INFINITY
  }

  #checkDeadlines(): void {
    this.#deadlineCheckAt = Number.POSITIVE_INFINITY
    const now = this.wire.now()
    for (const request of this.#open.values()) if (request.dueAt <= now) request.overdue()
    for (const call of this.#idempotent.values()) {
      if (call.dueAt <= now && !this.#idempotent.postpone(call)) call.overdue()
    }
    if (this.#ended) return
    let dueAt = Number.POSITIVE_INFINITY
    for (const request of this.#open.values()) dueAt = Math.min(dueAt, request.dueAt)
    for (const call of this.#idempotent.values()) dueAt = Math.min(dueAt, call.dueAt)
    this.#scheduleDeadlineCheck(dueAt)
  }

  #numbered(request: number, ack: Ack) {
    return { session: this.identity.session, request, ack }
  }

  // --- Changes and renewals ---

  #apply(change: Change): void {
    switch (change.kind) {
      case 'granted':
        return this.#pushedAnswer(change.request, { kind: 'granted', grant: change.grant })
      case 'refused':
        return this.#pushedAnswer(change.request, change.refused)
      case 'ended':
        return this.listener.holdEnded(tokenOf(this.identity.epoch, change.hold), change.reason, change.text)
    }
  }

  /** Of an acquire that was given up it means nothing: `cancel` undoes the grant. */
  #pushedAnswer(number: number, result: Result): void {
    const pending = this.#open.get(number)
    if (pending instanceof PendingAcquire) this.#settle(pending, result)
  }

  #sendRenewal(renewal: Renewal): void {
    this.wire.ensureConnected()
    if (!this.#attached || !this.wire.connected) return
    this.#renewCommand((error) => (error ? renewal.reject(error) : renewal.resolve()))
  }

  /** After a reconnect: fetches what was pushed meanwhile. */
  #sendCatchUp(): void {
    this.#renewCommand(() => {})
  }

  #renewCommand(done: (error: LeaseholdError | undefined) => void): void {
    const ack = this.#open.hasUnreported ? this.#open.takeAck() : undefined
    const { seen } = this.#changes
    const command: Command = {
      kind: 'renew',
      session: this.identity.session,
      ...(seen > 0 ? { seen } : {}),
      ...(ack === undefined ? {} : { ack }),
    }
    const answered = (result: Result): void => {
      if (this.#ended) return
      if (result.kind === 'renewed') {
        const fresh = this.#changes.renewed(result.changes)
        done(undefined)
        for (const change of fresh) this.#apply(change)
        return
      }
      if (ack) this.#open.restoreAck(ack)
      const error = result.kind === 'refused' ? errorOfRefusal(result) : unexpected('renew', result)
      if (error instanceof SessionEndedError) this.endedByService('expired', error)
      done(error)
    }
    this.wire.command(command, { answered })
  }

  #forgetRenewal(renewal: Renewal, then: () => void): void {
    if (!this.#renewals.delete(renewal)) return
    renewal.cancel()
    then()
  }

  #checkRoom(): void {
    if (!this.#ended && this.congested) throw windowFullError()
  }
}

/** The leader mints it; the field is filled in there. */
const NO_SECRET: Hex128 = '0'.repeat(32)
const RELEASED = Object.freeze({ released: true })
const NOTHING_TO_DO = (): void => {}
const NOTHING = Object.freeze({})
