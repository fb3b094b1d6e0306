import {
  type Ack,
  type Change,
  type Command,
  type Hex128,
  type LeaseholdError,
  NotHolderError,
  type Result,
  tokenOf,
} from '@leasehold/core'
import { type SessionEndReason, sessionAbandonedError, sessionClosedError } from '../end-reasons.js'
import {
  type AcquireOptions,
  type EngineGrant,
  type EngineSession,
  type EngineSessionListener,
  NO_LISTENER,
} from '../engine.js'
import { EpochIds } from './epoch-ids.js'
import { NO_NUMBER } from './idempotent-calls.js'
import { errorOfRefusal, unexpectedResult, windowFullError } from './refusals.js'
import type { CallTerms } from './session-call.js'
import { type RenewalHost, SessionRenewals } from './session-renewals.js'
import { SessionRequests } from './session-requests.js'
import type { SessionIdentity, Wire } from './wire.js'

/**
 * A session over the stream.
 *
 * - *attached* or not: its messages are sent only on a connection that the service has bound to it. After a reconnect it is
 *   attached with its secret, then everything open is sent again.
 * - *ended*: by the service, by `close`, or abandoned. Open requests are rejected, later answers dropped.
 */
export class ProtocolSession implements EngineSession, RenewalHost {
  readonly id: bigint
  readonly ttlMs: number
  readonly identity: SessionIdentity
  listener: EngineSessionListener = NO_LISTENER
  readonly wire: Wire
  readonly #ids: EpochIds
  readonly #requests: SessionRequests
  readonly #renewals: SessionRenewals
  #attached = true
  #closing: { send: () => void; done: (result: Result) => void } | undefined
  #ended: LeaseholdError | undefined

  constructor(wire: Wire, identity: SessionIdentity) {
    this.wire = wire
    this.identity = identity
    this.#ids = new EpochIds(identity.epoch)
    this.ttlMs = identity.ttlMs
    this.id = tokenOf(identity.epoch, identity.session)
    this.#requests = new SessionRequests({
      wire,
      identity,
      ids: this.#ids,
      isAttached: () => this.#attached,
      expired: (error) => this.expired(error),
    })
    this.#renewals = new SessionRenewals(this)
  }

  get congested(): boolean {
    return this.#requests.congested
  }

  /** Requests and renewals without a final answer. */
  get openRequests(): number {
    return this.#requests.size + this.#renewals.size
  }

  renew(timeoutMs: number): Promise<void> {
    return this.#ended ? Promise.reject(this.#ended) : this.#renewals.renew(timeoutMs)
  }

  acquire(options: AcquireOptions): Promise<EngineGrant> {
    if (this.#ended) return Promise.reject(this.#ended)
    if (this.congested) return Promise.reject(windowFullError())
    return this.#requests.acquire(options)
  }

  cancelAcquires(why: string): void {
    this.#requests.cancelAcquires(why)
  }

  async adopt(options: { id: bigint; secret: string; timeoutMs: number }): Promise<EngineGrant> {
    const hold = this.#ids.serial(options.id, 'hold')
    this.#checkWindow()
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
      // The caller no longer waits: the hold must not stay behind without an owner.
      late: (late) => {
        if (late.kind !== 'granted') return
        const grant = this.#ids.grant(late.grant)
        const secret = grant.secret === undefined ? {} : { secret: grant.secret }
        this.release(grant.id, { timeoutMs: this.ttlMs, ...secret }).catch(() => {})
      },
    })
    if (result.kind === 'granted') return this.#ids.grant(result.grant)
    throw unexpectedResult('adopt', result)
  }

  release(id: bigint, options: { timeoutMs: number; secret?: string }): Promise<{ released: boolean }> {
    const { secret, timeoutMs } = options
    const { session } = this.identity
    return new Promise((resolve, reject) => {
      const hold = this.#ids.serial(id, 'hold')
      const sends = { count: 0 }
      const answered = (result: Result): void => {
        if (result.kind === 'released') resolve(RELEASED)
        else reject(unexpectedResult('release', result))
      }
      const failed = (error: unknown): void => {
        // After a lost answer the hold is gone because the first sending has released it.
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
      // It is sent until it is answered, also when the caller has given up: the hold lives as long as the session.
      const terms: CallTerms = { what: 'release', timeoutMs, command, late: IGNORE, unsent: 'keep' }
      // Ids are never reused, so a release needs no number while a waiter blocks the window.
      this.#call(terms, answered, failed, this.congested)
    })
  }

  async put(options: Parameters<EngineSession['put']>[0]): Promise<bigint> {
    const { key, value, ifVersion, timeoutMs } = options
    const terms = { ...(ifVersion === undefined ? {} : { ifVersion }), ...this.#ids.fence(options.fence) }
    this.#checkWindow()
    const result = await this.#request({
      what: 'put',
      timeoutMs,
      command: (request, ack) => ({ kind: 'put', ...this.#numbered(request, ack), key, value, ...terms }),
    })
    if (result.kind === 'put') return result.version
    throw unexpectedResult('put', result)
  }

  async delete(options: Parameters<EngineSession['delete']>[0]): Promise<void> {
    const { key, ifVersion, timeoutMs } = options
    const terms = { ...(ifVersion === undefined ? {} : { ifVersion }), ...this.#ids.fence(options.fence) }
    this.#checkWindow()
    const result = await this.#request({
      what: 'delete',
      timeoutMs,
      command: (request, ack) => ({ kind: 'delete', ...this.#numbered(request, ack), key, ...terms }),
    })
    if (result.kind !== 'deleted') throw unexpectedResult('delete', result)
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
      this.end(sessionClosedError())
    }
  }

  abandon(): void {
    this.end(sessionAbandonedError())
  }

  // --- Events of the connection ---

  get attached(): boolean {
    return this.#attached
  }

  /** The connection is gone. */
  detach(): void {
    if (!this.#attached) return
    this.#attached = false
    this.#requests.detached()
    this.#renewals.detached()
  }

  /** The service has bound the session to the present connection: everything open is sent again. */
  attach(): void {
    if (this.#ended || this.#attached) return
    this.#attached = true
    this.#renewals.resendAll()
    this.#requests.resendAll()
    this.#closing?.send()
  }

  pushed(change: Change): void {
    if (!this.#ended && this.#renewals.pushed(change)) this.apply(change)
  }

  /** The service reports that the session has ended. */
  endedByService(reason: SessionEndReason, error: LeaseholdError): void {
    if (this.#ended) return
    const { listener } = this
    this.end(error)
    listener.sessionEnded(reason)
  }

  /** Rejects everything open with `error`; nothing is sent or accepted from now on. */
  end(error: LeaseholdError): void {
    if (this.#ended) return
    this.#ended = error
    this.listener = NO_LISTENER
    // The session was being closed, which is done now.
    this.#closing?.done({ kind: 'closed' })
    this.wire.forget(this)
    this.#requests.end(error)
    this.#renewals.end(error)
  }

  // --- What renewals and requests report ---

  get ended(): LeaseholdError | undefined {
    return this.#ended
  }

  takeUnreportedAck(): Ack | undefined {
    return this.#requests.takeUnreportedAck()
  }

  restoreAck(ack: Ack): void {
    this.#requests.restoreAck(ack)
  }

  expired(error: LeaseholdError): void {
    this.endedByService('expired', error)
  }

  apply(change: Change): void {
    switch (change.kind) {
      case 'granted':
        return this.#requests.pushedAnswer(change.request, { kind: 'granted', grant: change.grant })
      case 'refused':
        return this.#requests.pushedAnswer(change.request, change.refused)
      case 'ended':
        return this.listener.holdEnded(tokenOf(this.identity.epoch, change.hold), change.reason, change.text)
    }
  }

  #request(terms: CallTerms): Promise<Result> {
    return new Promise((resolve, reject) => this.#call(terms, resolve, reject))
  }

  #call(
    terms: CallTerms,
    resolve: (result: Result) => void,
    reject: (error: LeaseholdError) => void,
    idempotent = false,
  ): void {
    if (this.#ended) return reject(this.#ended)
    this.#requests.call(terms, resolve, reject, idempotent)
  }

  #numbered(request: number, ack: Ack) {
    return { session: this.identity.session, request, ack }
  }

  #checkWindow(): void {
    if (!this.#ended && this.congested) throw windowFullError()
  }
}

/** A placeholder: the leader mints the secret. */
const NO_SECRET: Hex128 = '0'.repeat(32)
const RELEASED = Object.freeze({ released: true })
const IGNORE = (): void => {}
const NOTHING = Object.freeze({})
