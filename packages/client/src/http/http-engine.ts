import {
  type Cursor,
  type Event,
  type HoldView,
  InvalidError,
  type LockRequest,
  NotHolderError,
  parseCursor,
  type Query,
  type QueryResult,
  type Serial,
  type SessionView,
  splitToken,
  type WaiterView,
} from '@leasehold/core'
import { ALL_CAPABILITIES } from '../capabilities.js'
import { Emitter } from '../async/emitter.js'
import type {
  Capabilities,
  Engine,
  EngineRegister,
  EngineSession,
  EngineStatus,
  OpenSessionOptions,
} from '../engine.js'
import { type ClientPlatform, defaultPlatform } from '../platform.js'
import { type HttpCall, type HttpAnswer, HttpExchange, type Json, NOT_FOUND } from './exchange.js'
import type { Fetch } from './fetch.js'
import { fromBase64 } from './hold-handle.js'
import { HttpSession, lockOf } from './http-session.js'

export interface HttpEngineOptions {
  readonly urls: readonly string[]
  readonly fetch: Fetch
  readonly apiKey?: string
  readonly platform?: ClientPlatform
}

/**
 * The engine that speaks HTTP and keeps no connection: for functions that live for one request. Slower than the stream,
 * without watches; a loss is noticed with the next renewal.
 */
export class HttpEngine implements Engine {
  readonly name: string
  readonly capabilities: Capabilities = { ...ALL_CAPABILITIES, watch: false }
  readonly #platform: ClientPlatform
  readonly #exchange: HttpExchange
  readonly #listeners: Emitter<EngineStatus>
  readonly #sessions = new Set<HttpSession>()

  constructor(options: HttpEngineOptions) {
    const { urls, fetch, apiKey = '', platform = defaultPlatform } = options
    this.name = `${urls.join(',')} over HTTP`
    this.#platform = platform
    this.#listeners = new Emitter(platform)
    this.#exchange = new HttpExchange({
      urls,
      fetch,
      apiKey,
      platform,
      onStatus: (status) => this.#listeners.emit(status),
      onRestored: (error) => {
        for (const session of [...this.#sessions]) session.endedByService('epoch-changed', error)
      },
    })
  }

  get status(): EngineStatus {
    return this.#exchange.status
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    return this.#listeners.add(listener)
  }

  async connect(timeoutMs: number): Promise<void> {
    await this.#call({ what: 'connect', method: 'GET', path: '/readyz', timeoutMs, raw: true })
  }

  async openSession(options: OpenSessionOptions): Promise<EngineSession> {
    const { ttlMs, client, timeoutMs } = options
    const nonce = Array.from(this.#platform.randomBytes(16), (byte) => byte.toString(16).padStart(2, '0')).join('')
    const body = { ttl: `${ttlMs}ms`, client, nonce }
    const { json } = await this.#call({ what: 'openSession', method: 'POST', path: '/v1/sessions', body, timeoutMs })
    const session = new HttpSession({
      exchange: this.#exchange,
      platform: this.#platform,
      handle: json.session as string,
      id: BigInt(json.id as string),
      ttlMs: json.ttlMs as number,
      forget: (ended) => this.#sessions.delete(ended),
    })
    this.#sessions.add(session)
    return session
  }

  async query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    const asked = Object.entries({ ...query, ...(options.stale ? { stale: true } : {}) })
    const text = asked.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
    const path = `/v1/locks${text === '' ? '' : `?${text}`}`
    const { json } = await this.#call({ what: 'query', method: 'GET', path, timeoutMs: options.timeoutMs })
    const at = parseCursor(json.at as string)
    return {
      epoch: at.epoch,
      at,
      next: (json.next as string | null) ?? undefined,
      held: (json.held as Json[]).map(holdView),
      pending: (json.pending as Json[]).map(waiterView),
      delays: json.delays as QueryResult['delays'],
      sessions: (json.sessions as Json[]).map(sessionView),
    }
  }

  async steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    const { actor, reason, timeoutMs } = options
    const body = { hold: String(hold), actor, reason }
    let mayHaveArrived = false
    const onUnanswered = () => {
      mayHaveArrived = true
    }
    try {
      await this.#call({ what: 'steal', method: 'POST', path: '/v1/steal', body, timeoutMs, onUnanswered })
    } catch (error) {
      if (!(error instanceof NotHolderError)) throw error
      // After a lost answer the hold is gone because the first sending has stolen it.
      if (mayHaveArrived) return
      throw new NotHolderError(`hold ${hold} does not exist`, { cause: error })
    }
  }

  async endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    const body = { session: String(session), reason: options.reason }
    const { timeoutMs } = options
    await this.#call({ what: 'endSession', method: 'POST', path: '/v1/sessions/end', body, timeoutMs })
  }

  async getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    const path = `/v1/registers?key=${encodeURIComponent(key)}${options.stale ? '&stale=true' : ''}`
    const { timeoutMs } = options
    const got = await this.#call({ what: 'get', method: 'GET', path, timeoutMs, raw: true })
    if (got.status === NOT_FOUND) return undefined
    const lock = got.headers.get('leasehold-lock')
    return {
      value: got.bytes,
      version: BigInt(got.headers.get('leasehold-version') ?? '0'),
      lock: lock === null ? undefined : decodeURIComponent(lock),
    }
  }

  /** Not over HTTP. */
  watch(): AsyncIterable<{ cursor: Cursor; event: Event }> {
    throw new InvalidError("there are no watches with transport 'http'", { hint: 'leave transport out, or query' })
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions]) session.abandon()
    this.#exchange.close()
    this.#listeners.clear()
  }

  #call(call: HttpCall): Promise<HttpAnswer> {
    return this.#exchange.call(call)
  }
}

function serial<S extends Serial>(text: unknown): S {
  return splitToken(BigInt(text as string)).serial as S
}

function holdView(json: Json): HoldView {
  const { data, dataBase64 } = json as { data?: string; dataBase64?: string }
  return {
    ...json,
    id: serial(json.hold),
    locks: (json.locks as Json[]).map((lock) => ({ ...lockOf(lock), token: serial(lock.token) })),
    session: json.session === null ? undefined : serial(json.session),
    remainingMs: (json.remainingMs as number | null) ?? undefined,
    data: dataBase64 === undefined ? new TextEncoder().encode(data ?? '') : fromBase64(dataBase64),
  } as unknown as HoldView
}

function waiterView(json: Json): WaiterView {
  return {
    ...json,
    session: serial(json.session),
    locks: json.locks as LockRequest[],
    remainingMs: (json.remainingMs as number | null) ?? undefined,
  } as unknown as WaiterView
}

function sessionView(json: Json): SessionView {
  return { ...json, id: serial(json.session) } as unknown as SessionView
}
