import { type ClientPlatform, type EngineStatus } from '@leasehold/client'
import {
  AbortedError,
  AccessError,
  EpochChangedError,
  LimitError,
  StorageError,
  UnavailableError,
} from '@leasehold/core'
import { CallError, CODE, GrpcConnection } from './grpc.js'
import {
  type Header,
  type LeaseAnswer,
  METHODS,
  type Method,
  type RangeRequest,
  type RangeResponse,
  type TxnRequest,
  type TxnResponse,
} from './messages.js'
import type { EtcdUrl } from '../url.js'
import { WatchStream } from './watch-stream.js'
import { decode, encode } from './protobuf.js'

/** Time of one attempt at one member, which may have no quorum: a quarter of the shortest TTL within these bounds. */
const ATTEMPT_TIMEOUT_MS = 3_000
const ATTEMPT_TIMEOUT_MIN_MS = 1_000
const TTL_SHARE = 4
/** Time to connect within one attempt. */
const CONNECT_TIMEOUT_MS = 1_000
const PAUSE_MIN_MS = 10
const PAUSE_MAX_MS = 500
/** etcd rejects pings that are more frequent than every 5 s. */
const PING_PAUSE_MS = 10_000
const PONG_TIMEOUT_MS = 3_000

/** The request was sent, and its outcome is unknown. */
export class LostAnswer extends Error {
  constructor(override readonly cause: Error) {
    super(`the answer is lost: ${cause.message}`)
  }
}

/** etcd rejected the request: it had no effect. */
export class RefusedByEtcd extends StorageError {
  constructor(
    /** Of gRPC. */
    readonly status: number,
    message: string,
  ) {
    super(`etcd has refused: ${message}`)
  }
}

export interface CallOptions {
  readonly timeoutMs: number
  /** Whether it may be sent again after its answer was lost. */
  readonly repeatable: boolean
  /** It is part of the check that follows a reconnect. */
  readonly validates?: boolean
  /** Called before it is sent again after a lost answer. */
  readonly repeated?: () => void
}

/**
 * The client of etcd: one connection to one of its members, the next one when that fails. All of the protocol is behind
 * this class; the rest of the engine sees ranges, transactions, leases and watches.
 */
export class EtcdClient {
  readonly watches: WatchStream
  #connection: GrpcConnection | undefined
  #turn = 0
  #token: string | undefined
  #authenticating: Promise<string> | undefined
  #status: EngineStatus = { state: 'idle' }
  #attempt = 0
  #closed = false
  #epoch: number | undefined
  #seenRevision = 0
  #attemptMs = ATTEMPT_TIMEOUT_MS
  readonly #place: EtcdUrl
  readonly #onStatus: (status: EngineStatus) => void
  #lastError: Error | undefined
  /** Runs first on a connection that replaces a lost one. */
  #validate: ((timeoutMs: number) => Promise<unknown>) | undefined
  #validating: Promise<void> | undefined
  /** A connection was lost since the last check of etcd: it may have been restored meanwhile. */
  #isSuspect = false

  constructor(
    readonly name: string,
    place: EtcdUrl,
    readonly platform: ClientPlatform,
    onStatus: (status: EngineStatus) => void,
  ) {
    this.#place = place
    this.#onStatus = onStatus
    this.#turn = Math.floor(platform.random() * place.endpoints.length)
    this.watches = new WatchStream({
      platform,
      open: async (events) => {
        if (this.#isSuspect) await this.#revalidate(ATTEMPT_TIMEOUT_MS)
        const headers = await this.#headers(ATTEMPT_TIMEOUT_MS)
        const connection = this.#use()
        this.#ping(connection)
        const message = (body: Buffer) => {
          this.#answered()
          events.message(body)
        }
        return connection.stream(METHODS.watch.path, { ...headers, hasleader: 'true' }, { ...events, message })
      },
      failed: (error) => (error instanceof CallError ? this.#failed(error) : undefined),
    })
  }

  /** The highest revision of an answer. */
  get seenRevision(): number {
    return this.#seenRevision
  }

  /** Accepts that etcd went back to `revision`: later answers are compared with that. */
  startOver(revision: number): void {
    this.#seenRevision = revision
    this.watches.onRevisionRegressed(revision)
  }

  /**
   * `validate` runs whenever a lost connection was replaced, before any other request is sent, also before one that is
   * repeated: etcd may have been restored in between. Its own calls set `validates`.
   */
  onReconnect(validate: (timeoutMs: number) => Promise<unknown>): void {
    this.#validate = validate
  }

  get status(): EngineStatus {
    return this.#status
  }

  get closed(): boolean {
    return this.#closed
  }

  get lastError(): Error | undefined {
    return this.#lastError
  }

  /** A silent connection must be left early enough for a renewal over the next one. */
  sessionOpened(ttlMs: number): void {
    this.#attemptMs = Math.max(ATTEMPT_TIMEOUT_MIN_MS, Math.min(this.#attemptMs, ttlMs / TTL_SHARE))
  }

  range(request: RangeRequest, timeoutMs: number, validates = false): Promise<RangeResponse> {
    return this.#call<RangeResponse>(METHODS.range, request, { timeoutMs, repeatable: true, validates })
  }

  /** @throws LostAnswer when it is not repeatable and its answer was lost */
  txn(request: TxnRequest, options: CallOptions): Promise<TxnResponse> {
    return this.#call<TxnResponse>(METHODS.txn, request, options)
  }

  async leaseGrant(ttlMs: number, timeoutMs: number): Promise<bigint> {
    // A lease whose id was lost expires.
    const ttl = Math.max(1, Math.ceil(ttlMs / 1_000))
    return (await this.#call<LeaseAnswer>(METHODS.leaseGrant, { ttl }, { timeoutMs, repeatable: true })).id
  }

  async leaseRevoke(id: bigint, timeoutMs: number): Promise<void> {
    try {
      await this.#call(METHODS.leaseRevoke, { id }, { timeoutMs, repeatable: true })
    } catch (error) {
      if (!(error instanceof RefusedByEtcd && error.status === CODE.notFound)) throw error
    }
  }

  /** Resolves with the term of the answer; undefined: the lease does not exist. */
  async leaseKeepAlive(id: bigint, timeoutMs: number): Promise<number | undefined> {
    const answer = await this.#call<LeaseAnswer>(METHODS.leaseKeepAlive, { id }, { timeoutMs, repeatable: true })
    return answer.ttl > 0 ? answer.header.raftTerm : undefined
  }

  /** The remaining time of a lease, in milliseconds; 0: it has expired. */
  async leaseRemaining(id: bigint, timeoutMs: number): Promise<number> {
    const answer = await this.#call<LeaseAnswer>(METHODS.leaseTimeToLive, { id }, { timeoutMs, repeatable: true })
    return Math.max(0, answer.ttl) * 1_000
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.watches.close()
    this.#connection?.close()
    this.#connection = undefined
    this.#setStatus({ state: 'closed' })
  }

  /** Reports the status `connected` from now on. */
  connected(epoch: number): void {
    this.#epoch = epoch
    this.#answered()
  }

  #answered(): void {
    this.#attempt = 0
    if (this.#closed || !this.#connection || this.#epoch === undefined) return
    this.#setStatus({ state: 'connected', url: this.#connection.url, epoch: this.#epoch })
  }

  async #call<T>(method: Method, request: object, options: CallOptions): Promise<T> {
    const { platform } = this
    const endAt = platform.monotonicMs() + options.timeoutMs
    const seen = this.#seenRevision
    const body = encode(method.request, request)
    for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      if (this.#closed) throw new AbortedError('the client is closed')
      const remainingMs = endAt - platform.monotonicMs()
      if (remainingMs <= 0) throw this.unavailable(`no answer within ${Math.round(options.timeoutMs)} ms`)
      try {
        if (this.#isSuspect && options.validates !== true) await this.#revalidate(remainingMs)
        const answer = decode<T & { header?: Header }>(
          method.answer,
          await this.#attemptOnce(method, body, remainingMs),
        )
        const linearizable = method === METHODS.txn || method === METHODS.range
        const isStale = (request as RangeRequest).serializable === true
        this.#note(answer.header, linearizable && !isStale && options.validates !== true ? seen : 0)
        return answer
      } catch (error) {
        this.#checkSession(error, options)
      }
      const rest = Math.max(1, Math.min(pauseMs, endAt - platform.monotonicMs()))
      await new Promise<void>((resolve) => platform.after(rest, resolve, true))
    }
  }

  /** One check for all waiting calls; a caller without time left leaves it to the others. */
  async #revalidate(remainingMs: number): Promise<void> {
    this.#validating ??= (async () => {
      this.#isSuspect = false
      try {
        await this.#validate?.(ATTEMPT_TIMEOUT_MS)
      } catch (error) {
        this.#isSuspect = true
        throw error
      }
    })().finally(() => {
      this.#validating = undefined
    })
    const checked = this.#validating
    checked.catch(() => {})
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(this.unavailable('etcd was not checked in time after a reconnect'))
      const cancel = this.platform.after(remainingMs, late, true)
      checked.then(resolve, reject).finally(cancel)
    })
  }

  /** Returns when the request may be sent again; throws otherwise. */
  #checkSession(error: unknown, options: CallOptions): void {
    if (!(error instanceof CallError)) throw error
    const { code, message } = error
    if (code === CODE.unauthenticated || /auth token/.test(message)) {
      if (this.#place.user === undefined) throw new AccessError(message, { code: 'unauthenticated' })
      this.#token = undefined
      return
    }
    if (code === CODE.denied) throw new AccessError(message, { code: 'forbidden' })
    if (/user name is empty/.test(message)) throw new AccessError(message, { code: 'unauthenticated' })
    if (/exceeds? quota|database space exceeded/.test(message)) throw new LimitError(`etcd: ${message}`)
    if (code !== CODE.unavailable && code !== CODE.deadline && code !== CODE.cancelled && code !== CODE.unknown) {
      throw new RefusedByEtcd(code, message)
    }
    this.#failed(error)
    if (!error.sent) return
    if (!options.repeatable) throw new LostAnswer(error)
    options.repeated?.()
  }

  async #attemptOnce(method: Method, body: Buffer, remainingMs: number): Promise<Buffer> {
    const limitMs = Math.min(remainingMs, this.#attemptMs)
    const headers = await this.#headers(limitMs)
    return this.#send(method, body, headers, limitMs)
  }

  #send(method: Method, body: Buffer, headers: Record<string, string>, limitMs: number): Promise<Buffer> {
    const connection = this.#use()
    const call = connection.unary(method.path, body, headers)
    connection.openSinceMs ??= this.platform.monotonicMs()
    return new Promise<Buffer>((resolve, reject) => {
      const late = () => {
        call.cancel()
        // A caller that had little time left must not break the calls of all others.
        const waitedMs = Math.max(limitMs, this.platform.monotonicMs() - (connection.openSinceMs ?? Infinity))
        const { connected } = connection
        const isLost = waitedMs >= (connected ? this.#attemptMs : CONNECT_TIMEOUT_MS)
        const message = `${connection.url} does not answer`
        reject(new CallError(CODE.deadline, message, connected, isLost ? connection : undefined))
      }
      const cancel = this.platform.after(limitMs, late, true)
      const answered = () => {
        cancel()
        connection.openSinceMs = undefined
      }
      call.answer.then(resolve, reject).finally(answered)
    })
  }

  async #headers(timeoutMs: number): Promise<Record<string, string>> {
    const { user: name, password } = this.#place
    if (name === undefined) return {}
    if (this.#token === undefined) {
      const body = encode(METHODS.authenticate.request, { name, password })
      this.#authenticating ??= this.#send(METHODS.authenticate, body, {}, timeoutMs)
        .then(
          (answer) => decode<{ token: string }>(METHODS.authenticate.answer, answer).token,
          (error: unknown) => {
            if (error instanceof CallError && !error.message.includes('connect') && error.code === 3) {
              throw new AccessError(error.message, { code: 'unauthenticated' })
            }
            throw error
          },
        )
        .finally(() => {
          this.#authenticating = undefined
        })
      this.#token = await this.#authenticating
    }
    return { token: this.#token }
  }

  #use(): GrpcConnection {
    if (this.#connection?.usable) return this.#connection
    if (this.#closed) throw new AbortedError('the client is closed')
    const url = this.#place.endpoints[this.#turn % this.#place.endpoints.length] as string
    this.#attempt++
    const lastError = this.#lastError
    this.#setStatus({ state: 'connecting', attempt: this.#attempt, ...(lastError ? { lastError } : {}) })
    const connection = new GrpcConnection(url, this.#place.tls, () => this.#leave(connection))
    this.#connection = connection
    return connection
  }

  /** Pings the member of a connection that only delivers events. */
  #ping(connection: GrpcConnection): void {
    if (connection.isPinged) return
    connection.isPinged = true
    const { platform } = this
    const again = () => {
      if (this.#connection !== connection || !connection.usable) return
      const cancel = platform.after(PONG_TIMEOUT_MS, () => {
        this.#failed(new CallError(CODE.unavailable, `${connection.url} does not answer`, true, connection))
      })
      connection.ping(() => {
        cancel()
        platform.after(PING_PAUSE_MS, again)
      })
    }
    platform.after(PING_PAUSE_MS, again)
  }

  #failed(error: CallError): void {
    this.#lastError = error
    if (error.connection) this.#leave(error.connection, error)
  }

  /** Leaves a member and tries the next one. A failure of an earlier connection does not count. */
  #leave(connection: GrpcConnection, error?: Error): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#isSuspect = true
    this.#turn++
    connection.close(error)
  }

  #note(header: Header | undefined, atLeast: number): void {
    this.#answered()
    if (header === undefined) return
    if (header.revision < atLeast) {
      this.#isSuspect = true
      throw new EpochChangedError(`etcd went back from revision ${atLeast} to ${header.revision}`, {
        hint: 'it was restored: the holds of this client are lost; retry',
      })
    }
    if (header.revision > this.#seenRevision) this.#seenRevision = header.revision
  }

  unavailable(message: string): UnavailableError {
    const cause = this.#lastError
    const isWithoutQuorum = /no leader|timed out|leader changed/.test(cause?.message ?? '')
    return new UnavailableError(`${this.name}: ${message}${cause ? ` (${cause.message})` : ''}`, {
      code: isWithoutQuorum ? 'no-quorum' : 'unreachable',
      cause,
      hint: 'says nothing about the holder of a lock',
    })
  }

  #setStatus(status: EngineStatus): void {
    if (this.#status.state === status.state && status.state !== 'connecting') return
    this.#status = status
    this.#onStatus(status)
  }
}
