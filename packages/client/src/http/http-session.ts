import {
  AbortedError,
  AcquireTimeoutError,
  ExpiredRequestError,
  HoldLostError,
  InvalidError,
  LeaseholdError,
  type Mode,
  NotHolderError,
  SessionEndedError,
  type Token,
  UnavailableError,
} from '@leasehold/core'
import { endReasonOf, type SessionEndReason, sessionAbandonedError, sessionClosedError } from '../end-reasons.js'
import {
  type AcquireOptions,
  type EngineGrant,
  type EngineSession,
  type EngineSessionListener,
  NO_LISTENER,
} from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { isBeforehand, unknownOutcomeError, windowFullError } from '../protocol/refusals.js'
import { abortedError } from '../async/bounded-wait.js'
import type { HttpCall, HttpAnswer, HttpExchange, Json } from './exchange.js'
import { base64Of } from '../json.js'
import { holdHandle, secretOf } from './hold-handle.js'
import { RequestNumbers } from './request-numbers.js'

export interface HttpSessionOptions {
  readonly exchange: HttpExchange
  readonly platform: ClientPlatform
  readonly handle: string
  readonly id: bigint
  readonly ttlMs: number
  readonly forget: (session: HttpSession) => void
}

/** Open requests: the service keeps the answers of a few numbers only. */
const OPEN_MAX = 48
/**
 * Request numbers stop here above the lowest open one, except for cancels: the service, which keeps the answers of 64 below it, refuses
 * acquires and writes at 512 and cancels at 1 024.
 */
const WINDOW_REQUESTS = 400
/** How much longer than the wait the service may take to report the timeout, over a second connection if the first is silent. */
const GRACE_MS = 5_000
const FOREVER_MS = 24 * 3_600_000
/** Holds that are checked at the same time. */
const CHECKS_AT_ONCE = 8

/**
 * A session over HTTP: every request is a call of its own and carries its number, so that it can be repeated. A grant is
 * waited for by a call that the service answers late. Nothing is pushed: the next renewal notices that a hold was lost.
 */
export class HttpSession implements EngineSession {
  readonly id: bigint
  readonly ttlMs: number
  listener: EngineSessionListener = NO_LISTENER
  readonly #options: HttpSessionOptions
  readonly #handles = new Map<bigint, string>()
  readonly #waits = new Set<(why?: AbortedError) => void>()
  readonly #numbers = new RequestNumbers()
  #open = 0
  #ended: LeaseholdError | undefined

  constructor(options: HttpSessionOptions) {
    this.#options = options
    this.id = options.id
    this.ttlMs = options.ttlMs
  }

  get congested(): boolean {
    return this.#open >= OPEN_MAX || this.#numbers.width > WINDOW_REQUESTS
  }

  async renew(timeoutMs: number): Promise<void> {
    await this.#call({ what: 'renew', method: 'POST', path: '/v1/renew', body: { session: this.#session }, timeoutMs })
    const holds = [...this.#handles]
    while (holds.length > 0)
      await Promise.all(holds.splice(0, CHECKS_AT_ONCE).map((hold) => this.#check(hold, timeoutMs)))
  }

  async acquire(options: AcquireOptions): Promise<EngineGrant> {
    if (this.#ended) throw this.#ended
    if (this.congested) throw windowFullError()
    const { platform } = this.#options
    const controller = platform.abortController()
    const { signal } = options
    let why: AbortedError | undefined
    const stop = (error?: AbortedError) => {
      why = error
      controller.abort()
    }
    const abort = () => stop(abortedError('acquire', signal as AbortSignal))
    this.#waits.add(stop)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
    const endAt = platform.monotonicMs() + options.waitMs
    this.#open++
    try {
      return await this.#acquire(options, endAt, controller.signal)
    } catch (error) {
      throw why ?? this.#ended ?? error
    } finally {
      this.#open--
      this.#waits.delete(stop)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** After a broken connection the request keeps its place in the queue. After a restart of the service it queues again. */
  async #acquire(options: AcquireOptions, endAt: number, signal: AbortSignal): Promise<EngineGrant> {
    const { platform } = this.#options
    for (;;) {
      const leftMs = Math.max(0, Math.ceil(endAt - platform.monotonicMs()))
      const request = this.#numbers.take()
      let isCancelled = false
      try {
        const answer = await this.#call({
          what: 'acquire',
          method: 'POST',
          path: '/v1/acquire',
          body: { ...acquireBody(options, leftMs), session: this.#session, request },
          timeoutMs: Math.min(leftMs, FOREVER_MS) + GRACE_MS,
          waitMs: Math.min(leftMs, FOREVER_MS),
          signal,
        })
        return this.#granted(answer.json)
      } catch (error) {
        if (error instanceof HoldLostError) {
          throw new NotHolderError(`it was granted, and lost (${error.reason}) before the answer arrived`)
        }
        const gone = error instanceof AbortedError || error instanceof ExpiredRequestError
        isCancelled = signal.aborted || error instanceof UnavailableError || refusedBeforehand(error)
        if (isCancelled) void this.#cancel(request)
        if (signal.aborted || !gone || this.#ended) throw error
        if (platform.monotonicMs() >= endAt) {
          throw new AcquireTimeoutError(`not acquired within ${options.waitMs} ms`, { cause: error })
        }
      } finally {
        if (!isCancelled) this.#numbers.close(request)
      }
    }
  }

  cancelAcquires(why: string): void {
    for (const stop of [...this.#waits]) stop(new AbortedError(why))
  }

  async adopt({ id, secret, timeoutMs }: Parameters<EngineSession['adopt']>[0]): Promise<EngineGrant> {
    const request = this.#numberOfWrite()
    const body = { hold: holdHandle(id, secret), session: this.#session, request }
    const { json } = await this.#write({ what: 'adopt', method: 'POST', path: '/v1/adopt', body, timeoutMs }, request)
    return this.#granted(json)
  }

  async release(
    id: bigint,
    { timeoutMs, secret }: Parameters<EngineSession['release']>[1],
  ): Promise<{ released: boolean }> {
    const hold = secret === undefined ? this.#handles.get(id) : holdHandle(id, secret)
    this.#handles.delete(id)
    if (hold === undefined) return { released: false }
    let mayHaveArrived = false
    const onUnanswered = () => {
      mayHaveArrived = true
    }
    const body = { hold }
    const call: HttpCall = { what: 'release', method: 'POST', path: '/v1/release', body, timeoutMs, onUnanswered }
    try {
      await (secret === undefined ? this.#write(call) : this.#options.exchange.call(call))
      return { released: true }
    } catch (error) {
      // The hold is gone because the sending with the lost answer released it.
      if (error instanceof NotHolderError) return { released: mayHaveArrived }
      throw error
    }
  }

  async put(options: Parameters<EngineSession['put']>[0]): Promise<bigint> {
    const { key, value, timeoutMs } = options
    const terms = this.#terms(options)
    const body = { ...terms, value: base64Of(value), encoding: 'base64' }
    const path = `/v1/registers?key=${encodeURIComponent(key)}`
    const { json } = await this.#write({ what: 'put', method: 'PUT', path, body, timeoutMs }, terms.request)
    return BigInt(json.version as string)
  }

  async delete(options: Parameters<EngineSession['delete']>[0]): Promise<void> {
    const { key, timeoutMs } = options
    const terms = this.#terms(options)
    const query = Object.entries({ key, ...terms })
      .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
      .join('&')
    await this.#write({ what: 'delete', method: 'DELETE', path: `/v1/registers?${query}`, timeoutMs }, terms.request)
  }

  async close(timeoutMs: number): Promise<void> {
    if (this.#ended) return
    const body = { session: this.#session, reason: '' }
    try {
      await this.#options.exchange.call({ what: 'close', method: 'POST', path: '/v1/sessions/end', body, timeoutMs })
    } catch (error) {
      if (!(error instanceof SessionEndedError)) throw error
    } finally {
      this.end(sessionClosedError())
    }
  }

  abandon(): void {
    this.end(sessionAbandonedError())
  }

  /** The service reports that the session has ended. */
  endedByService(reason: SessionEndReason, error: LeaseholdError): void {
    if (this.#ended) return
    const { listener } = this
    this.end(error)
    listener.sessionEnded(reason)
  }

  end(error: LeaseholdError): void {
    if (this.#ended) return
    this.#ended = error
    this.listener = NO_LISTENER
    this.#handles.clear()
    this.#options.forget(this)
    for (const stop of [...this.#waits]) stop()
  }

  get #session(): string {
    return this.#options.handle
  }

  async #call(call: HttpCall): Promise<HttpAnswer> {
    if (this.#ended) throw this.#ended
    try {
      return await this.#options.exchange.call(call)
    } catch (error) {
      if (error instanceof SessionEndedError) this.endedByService('expired', error)
      throw this.#ended ?? error
    }
  }

  /** Sends a write. A sending without an answer may have taken effect. */
  async #write(call: HttpCall, request?: number): Promise<HttpAnswer> {
    this.#open++
    let unanswered = false
    const onUnanswered = (): void => {
      unanswered = true
      call.onUnanswered?.()
    }
    try {
      return await this.#call({ ...call, onUnanswered })
    } catch (error) {
      if (error instanceof UnavailableError || (unanswered && refusedBeforehand(error))) {
        throw unknownOutcomeError(call.what, error as LeaseholdError)
      }
      throw error
    } finally {
      this.#open--
      if (request !== undefined) this.#numbers.close(request)
    }
  }

  /** Makes sure that an acquire has no effect: it leaves the queue, or its hold is released, or it never takes effect. */
  async #cancel(request: number): Promise<void> {
    const number = this.#numbers.take()
    const body = { session: this.#session, request, number }
    try {
      await this.#call({ what: 'cancel', method: 'POST', path: '/v1/cancel', body, timeoutMs: this.ttlMs })
    } catch (error) {
      // Other holds keep the session alive, and this grant must not live on in it.
      const known = error instanceof LeaseholdError ? error : new UnavailableError('an acquire was not cancelled')
      this.endedByService('expired', known)
    } finally {
      this.#numbers.close(request)
      this.#numbers.close(number)
    }
  }

  async #check([id, hold]: [bigint, string], timeoutMs: number): Promise<void> {
    try {
      await this.#call({ what: 'renew', method: 'POST', path: '/v1/renew', body: { hold }, timeoutMs })
    } catch (error) {
      if (!(error instanceof HoldLostError) && !(error instanceof NotHolderError)) throw error
      if (!this.#handles.delete(id)) return
      this.listener.holdEnded(id, error instanceof HoldLostError ? endReasonOf(error.reason) : 'expired', '')
    }
  }

  #granted(json: Json): EngineGrant {
    const hold = json.hold as string
    const id = BigInt(json.id as string)
    this.#handles.set(id, hold)
    const secret = secretOf(hold)
    return {
      id,
      locks: (json.locks as Json[]).map(lockOf),
      ...(secret === undefined ? {} : { secret }),
    }
  }

  #numberOfWrite(): number {
    if (!this.#ended && this.#numbers.width > WINDOW_REQUESTS) throw windowFullError()
    return this.#numbers.take()
  }

  #terms({
    ifVersion,
    fence,
  }: {
    ifVersion?: bigint
    fence?: { hold: bigint; lock: string }
  }): Json & { request: number } {
    const handle = fence && this.#handles.get(fence.hold)
    if (fence && handle === undefined) {
      throw new InvalidError('a fenced write goes through the client that has the hold', {
        hint: 'use the register of the same locks object as the hold',
      })
    }
    return {
      session: this.#session,
      request: this.#numberOfWrite(),
      ...(ifVersion === undefined ? {} : { ifVersion: String(ifVersion) }),
      ...(fence === undefined ? {} : { fence: handle, lock: fence.lock }),
    }
  }
}

export function lockOf(json: Json): { name: string; mode: Mode; token: Token; slot?: number } {
  const { name, mode, token, slot } = json as { name: string; mode: Mode; token: string; slot?: number }
  return { name, mode, token: BigInt(token) as Token, ...(slot === undefined ? {} : { slot }) }
}

function acquireBody(options: AcquireOptions, waitMs: number): Json {
  const { locks, lockDelayMs, persistent, portable, data } = options
  return {
    locks,
    wait: options.waitMs === Number.POSITIVE_INFINITY ? 'Infinity' : `${waitMs}ms`,
    ...(lockDelayMs === 0 ? {} : { lockDelay: `${lockDelayMs}ms` }),
    ...(persistent ? { persistent } : {}),
    ...(portable ? { portable } : {}),
    ...(data.length === 0 ? {} : { data: textOf(data) }),
  }
}

function textOf(data: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(data)
  } catch (error) {
    throw new InvalidError("with transport 'http' data is a text", { cause: error, hint: 'write it as base64' })
  }
}

function refusedBeforehand(error: unknown): boolean {
  return error instanceof LeaseholdError && isBeforehand(error.code)
}
