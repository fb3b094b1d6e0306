import {
  errorOf,
  EpochChangedError,
  isErrorCode,
  type LeaseholdError,
  type LostReason,
  UnavailableError,
} from '@leasehold/core'
import type { EngineStatus } from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { backoffMs } from '../protocol/backoff.js'
import { abortedError, delay } from '../async/bounded-wait.js'
import { after } from '../async/timers.js'
import type { Fetch, FetchAnswer } from './fetch.js'
import { closeConnections, type Dispatcher, freshConnections } from './fresh-connections.js'

export type Json = Record<string, unknown>

export interface ExchangeOptions {
  readonly urls: readonly string[]
  readonly fetch: Fetch
  readonly apiKey: string
  readonly platform: ClientPlatform
  readonly onStatus: (status: EngineStatus) => void
  /** The service is another one, or of a later epoch. */
  readonly onRestored: (error: EpochChangedError) => void
}

export interface HttpCall {
  readonly what: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: Json
  /** For all attempts together. */
  readonly timeoutMs: number
  /** How long the service may wait before it answers. Default: it answers at once. */
  readonly waitMs?: number
  readonly signal?: AbortSignal | undefined
  /** Called when an attempt may have reached the service without an answer. */
  readonly onUnanswered?: () => void
  /** Returns the bytes as they are, also of a 404. */
  readonly raw?: boolean
}

export interface HttpAnswer {
  readonly status: number
  readonly json: Json
  readonly bytes: Uint8Array
  readonly headers: FetchAnswer['headers']
}

const ATTEMPT_MS = 10_000
/** How long an attempt may take in the first round; later rounds take longer. */
const ATTEMPT_FIRST_MS = 2_000
/** The same with several members. */
const ATTEMPT_FIRST_OF_SEVERAL_MS = 1_000
/** How long a request that waits at the service stays on one connection, which may have gone silent: first, and later. */
const SLICE_FIRST_MS = 2_000
const SLICE_MS = 3_500
/** For the check whether a member still answers while a request waits there. */
const CHECK_MS = 1_000
/** A redirect to a member that was unreachable within this time is not followed. */
const UNREACHABLE_MS = 2_000
const REDIRECT = 307
export const NOT_FOUND = 404
const REDIRECTS_MAX = 3
/** Largest answer in bytes: a page of a query is far smaller. */
const ANSWER_BYTES_MAX = 32 * 2 ** 20

/** Codes of answers after which the next member is tried. */
const RETRYABLE_ELSEWHERE = new Set<string>(['no-quorum', 'unreachable', 'unknown-outcome'])

/** Requests over HTTP: tries several members in turn, follows redirects to the leader, and repeats until an answer. */
export class HttpExchange {
  readonly #options: ExchangeOptions
  #preferred: string
  #turn = 0
  #cluster = ''
  #epoch = 0
  #status: EngineStatus = { state: 'idle' }
  #closed = false
  /** The connections of this client after a failure; undefined: those of `fetch`. */
  #connections: Dispatcher | undefined
  /** By the URL that a redirect named: when it was last unreachable. */
  readonly #unreachableAt = new Map<string, number>()

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#preferred = options.urls[0] as string
  }

  get status(): EngineStatus {
    return this.#status
  }

  get epoch(): number {
    return this.#epoch
  }

  close(): void {
    this.#closed = true
    this.#become({ state: 'closed' })
    closeConnections(this.#connections)
  }

  /** Sends a repeatable request until it is answered. @throws the typed error of a refusal */
  async call(call: HttpCall): Promise<HttpAnswer> {
    const { platform, urls } = this.#options
    const now = platform.monotonicMs()
    const until = { endAt: now + call.timeoutMs, waitEndAt: now + (call.waitMs ?? 0) }
    const { endAt } = until
    let last: LeaseholdError | undefined
    for (let attempt = 1; ; attempt++) {
      const patienceMs = this.#patienceMs(attempt)
      for (let i = 0; i < urls.length; i++) {
        const leftMs = endAt - platform.monotonicMs()
        if (call.signal?.aborted) throw abortedError(call.what, call.signal)
        if (this.#closed || (leftMs <= 0 && attempt > 1)) break
        try {
          return await this.#inSlices(call, { ...until, patienceMs, isRepeat: last !== undefined })
        } catch (error) {
          if (!isRetryableElsewhere(error)) throw error
          last = error
          if (!isNotSent(error)) call.onUnanswered?.()
          this.#preferred = urls[++this.#turn % urls.length] as string
          this.#become({ state: 'connecting', attempt, lastError: error })
        }
      }
      const leftMs = endAt - platform.monotonicMs()
      if (this.#closed || leftMs <= 0) throw this.#unavailable(call, last)
      await delay(platform, Math.min(leftMs, backoffMs(platform, attempt + 1)))
    }
  }

  /** Limits an attempt, so that a silent member or connection does not use up the time in which another could answer. */
  #patienceMs(round: number): number {
    const firstMs = this.#options.urls.length === 1 ? ATTEMPT_FIRST_MS : ATTEMPT_FIRST_OF_SEVERAL_MS
    return Math.min(ATTEMPT_MS, firstMs * 2 ** Math.min(round - 1, 16))
  }

  /**
   * One attempt. A request that waits at the service is repeated over a new connection from time to time: a wait cannot be told
   * from a silent connection. It keeps its place in the queue by its number.
   */
  async #inSlices(
    call: HttpCall,
    terms: { endAt: number; waitEndAt: number; patienceMs: number; isRepeat: boolean },
  ): Promise<HttpAnswer> {
    const { platform } = this.#options
    let { isRepeat } = terms
    let own: Dispatcher | undefined
    for (;;) {
      const now = platform.monotonicMs()
      const waitLeftMs = Math.max(0, terms.waitEndAt - now)
      const limitMs = Math.max(1, Math.min(terms.endAt - now, waitLeftMs + terms.patienceMs))
      const sliceMs = isRepeat ? SLICE_MS : SLICE_FIRST_MS
      const isSlice = waitLeftMs > 0 && limitMs > sliceMs
      const attempt = { limitMs: isSlice ? sliceMs : limitMs, isRepeat, connections: own ?? this.#connections }
      try {
        return await this.#followRedirects(this.#preferred, call, attempt)
      } catch (error) {
        if (!isSlice || !(error instanceof SilentMember) || this.#closed) {
          if (isRetryableElsewhere(error) && !own) this.#leaveConnections(attempt.connections)
          throw error
        }
        call.onUnanswered?.()
        if (!(await this.#stillAnswers(error.base))) throw error
      } finally {
        closeConnections(own)
      }
      isRepeat = true
      own = freshConnections()
    }
  }

  /** Uses no connection of this pool again: others of it may be silent too, or lead to the same member. */
  #leaveConnections(used: Dispatcher | undefined): void {
    if (this.#closed || this.#connections !== used) return
    closeConnections(used)
    this.#connections = freshConnections()
  }

  /** Whether a request that waits at this member should be repeated there. */
  async #stillAnswers(base: string): Promise<boolean> {
    const { urls } = this.#options
    if (urls.length === 1 && urls[0] === base) return true
    const check: HttpCall = { what: 'check', method: 'GET', path: '/readyz', timeoutMs: CHECK_MS, raw: true }
    const connections = freshConnections()
    try {
      await this.#attempt(base, check, { limitMs: CHECK_MS, isRepeat: true, connections })
      return true
    } catch {
      return false
    } finally {
      closeConnections(connections)
    }
  }

  async #followRedirects(url: string, call: HttpCall, terms: AttemptTerms): Promise<HttpAnswer> {
    const { platform } = this.#options
    let base = url
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const answer = await this.#attempt(base, call, terms).catch((error: unknown) => {
        if (hop > 0 && isRetryableElsewhere(error)) this.#unreachableAt.set(base, platform.monotonicMs())
        throw error
      })
      if ('got' in answer) {
        this.#preferred = base
        this.#unreachableAt.clear()
        this.#become({ state: 'connected', url: base, epoch: this.#epoch })
        return answer.got
      }
      const from = base
      base = new URL(answer.location, base).origin
      const unreachableAt = this.#unreachableAt.get(base) ?? Number.NEGATIVE_INFINITY
      if (platform.monotonicMs() - unreachableAt < UNREACHABLE_MS) {
        throw new UnavailableError(`${from} redirects to ${base}, which does not answer`, { code: 'no-quorum' })
      }
    }
    throw new UnavailableError('members redirect to each other as the leader', { code: 'no-quorum' })
  }

  async #attempt(
    base: string,
    call: HttpCall,
    { limitMs, isRepeat, connections }: AttemptTerms,
  ): Promise<{ got: HttpAnswer } | { location: string }> {
    const { platform, fetch, apiKey } = this.#options
    const controller = platform.abortController()
    const abort = () => controller.abort()
    call.signal?.addEventListener('abort', abort)
    let isLate = false
    const late = () => {
      isLate = true
      abort()
    }
    const cancel = after(platform, limitMs, late, true)
    try {
      const answer = await fetch(base.replace(/\/+$/, '') + call.path, {
        method: call.method,
        redirect: 'manual',
        signal: controller.signal,
        headers: {
          ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
          // Where the connections cannot be chosen, this at least ends the one that is used.
          ...(isRepeat && connections === undefined ? { connection: 'close' } : {}),
          ...(call.raw ? { accept: 'application/octet-stream' } : {}),
          ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        ...(connections === undefined ? {} : { dispatcher: connections }),
      })
      const location = answer.headers.get('location')
      if (answer.status === REDIRECT && location !== null) {
        await answer.arrayBuffer()
        return { location }
      }
      return { got: await this.#read(base, call, answer) }
    } catch (error) {
      if (call.signal?.aborted) throw abortedError(call.what, call.signal)
      if (isTyped(error)) throw error
      if (isLate) throw new SilentMember(base, limitMs, error)
      throw new UnavailableError(`${base} does not answer: ${(error as Error)?.message}`, { cause: error })
    } finally {
      cancel()
      call.signal?.removeEventListener('abort', abort)
    }
  }

  async #read(base: string, call: HttpCall, answer: FetchAnswer): Promise<HttpAnswer> {
    const bytes = new Uint8Array(await answer.arrayBuffer())
    if (bytes.length > ANSWER_BYTES_MAX) throw new UnavailableError(`an answer of ${bytes.length} bytes`)
    const fine = answer.status >= 200 && answer.status < 300
    const { status, headers } = answer
    if (call.raw && (fine || status === NOT_FOUND)) return { status, json: {}, bytes, headers }
    const json = jsonOf(bytes)
    if (json === undefined) {
      throw new UnavailableError(`${base} answered ${answer.status}, but not as a lock service`)
    }
    if (!fine) throw problemOf(answer.status, json)
    this.#checkEpoch(base, json)
    return { status, json, bytes, headers }
  }

  /** Checks the service and epoch of an answer. An older epoch is rejected; another service ends all sessions. */
  #checkEpoch(base: string, { epoch, cluster }: Json): void {
    if (typeof epoch !== 'number' || typeof cluster !== 'string') return
    if (epoch < this.#epoch) {
      throw new UnavailableError(
        `${base} is of epoch ${epoch}, older than ${this.#epoch}, which this client has seen`,
        {
          hint: 'this member was left behind by a restore',
        },
      )
    }
    const restored = this.#epoch !== 0 && (epoch > this.#epoch || cluster !== this.#cluster)
    this.#epoch = epoch
    this.#cluster = cluster
    if (!restored) return
    this.#options.onRestored(new EpochChangedError(`the service was restored: epoch ${epoch}, cluster ${cluster}`))
  }

  #unavailable(call: HttpCall, cause: LeaseholdError | undefined): LeaseholdError {
    const text = `${this.#options.urls.join(',')}: no answer to ${call.what} within ${Math.round(call.timeoutMs)} ms`
    const code = cause?.code === 'no-quorum' ? 'no-quorum' : 'unreachable'
    const why = cause ? ` (${cause.message})` : ''
    return new UnavailableError(text + why, { code, cause, hint: 'says nothing about the holder of a lock' })
  }

  #become(status: EngineStatus): void {
    if (this.#status.state === 'closed') return
    const same = status.state === this.#status.state && status.state === 'connected'
    this.#status = status
    if (!same) this.#options.onStatus(status)
  }
}

interface AttemptTerms {
  readonly limitMs: number
  /** An earlier attempt may have failed because of its connection. */
  readonly isRepeat: boolean
  readonly connections: Dispatcher | undefined
}

/** A member did not answer in time. */
class SilentMember extends UnavailableError {
  constructor(
    readonly base: string,
    limitMs: number,
    cause: unknown,
  ) {
    super(`${base} did not answer within ${Math.round(limitMs)} ms`, { cause })
  }
}

function isTyped(error: unknown): error is LeaseholdError {
  return isErrorCode((error as LeaseholdError | undefined)?.code)
}

/** Node's codes of failures to connect, after which nothing was sent. Other runtimes have none. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

function isNotSent(error: LeaseholdError): boolean {
  const code = ((error.cause as Error | undefined)?.cause as { code?: string } | undefined)?.code
  return code !== undefined && NOT_SENT.has(code)
}

function isRetryableElsewhere(error: unknown): error is LeaseholdError {
  return isTyped(error) && RETRYABLE_ELSEWHERE.has(error.code)
}

function jsonOf(bytes: Uint8Array): Json | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof value === 'object' && value !== null ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

function problemOf(status: number, problem: Json): LeaseholdError {
  const { code, detail, hint, reason, version } = problem
  if (!isErrorCode(code)) return new UnavailableError(`the service answered ${status}`)
  return errorOf(code, typeof detail === 'string' ? detail : code, {
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(typeof reason === 'string' ? { reason: reason as LostReason } : {}),
    ...(typeof version === 'string' ? { version: BigInt(version) } : {}),
  })
}
