import {
  AbortedError,
  type Cursor,
  type EndReason,
  type Event,
  LimitError,
  type Query,
  type QueryResult,
  UnavailableError,
} from '@leasehold/core'
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
import { decodeError, decodeStatus } from './thread-codec.js'
import type { FromHost, OwnedPort, ToHost } from './port.js'
import { type Caller, type CallOptions, RemoteSession } from './remote-session.js'
import { SharedLease } from './shared-lease.js'

export interface RemoteEngineOptions {
  readonly name: string
  /** Those of the engine on the other side. */
  readonly capabilities: Capabilities
  /** Starts the thread that serves the engine, with an {@link EngineHost} in it. */
  readonly openPort: () => OwnedPort
  /** A monotonic clock that shows the same in every thread, in milliseconds. */
  readonly sharedClockMs: () => number
  readonly platform?: ClientPlatform
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** Calls that may be open at once. */
const CALLS_MAX = 50_000

/**
 * An engine whose connection and renewals live in another thread, so that holds stay held while this one is busy.
 * When the other thread dies, what is open is `unreachable`, its holds are lost, and the next call starts a new one.
 */
export class RemoteEngine implements Engine, Caller {
  readonly name: string
  readonly capabilities: Capabilities
  readonly platform: ClientPlatform
  readonly #options: RemoteEngineOptions
  readonly #listeners: Emitter<EngineStatus>
  readonly #pending = new Map<number, Pending>()
  readonly #sessions = new Map<number, RemoteSession>()
  #port: OwnedPort | undefined
  #lastCall = 0
  #lastSession = 0
  #status: EngineStatus = { state: 'idle' }

  constructor(options: RemoteEngineOptions) {
    this.name = options.name
    this.capabilities = options.capabilities
    this.platform = options.platform ?? defaultPlatform
    this.#options = options
    this.#listeners = new Emitter(this.platform)
  }

  get status(): EngineStatus {
    return this.#status
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    return this.#listeners.add(listener)
  }

  connect(timeoutMs: number): Promise<void> {
    return this.call('connect', [timeoutMs])
  }

  async openSession(options: OpenSessionOptions): Promise<EngineSession> {
    type Opened = { id: bigint; ttlMs: number; lease: SharedArrayBuffer }
    const number = ++this.#lastSession
    let session: RemoteSession | undefined
    await this.call<Opened>('openSession', [{ ...options, number }], {}, (opened) => {
      session = new RemoteSession(this, { ...opened, number }, new SharedLease(opened.lease))
      // Registered within the answer: what follows it may be the end of this session.
      this.#sessions.set(number, session)
    })
    return session as unknown as RemoteSession
  }

  query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    return this.call('query', [query, options])
  }

  steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    return this.call('steal', [hold, options])
  }

  endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    return this.call('endSession', [session, options])
  }

  getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    return this.call('getRegister', [key, options])
  }

  async *watch(options: {
    prefix: string
    from?: Cursor
    signal: AbortSignal
  }): AsyncGenerator<{ cursor: Cursor; event: Event }, void, void> {
    const { signal, ...rest } = options
    if (signal.aborted) return
    const id = await this.call<number>('watchStart', [rest])
    const stop = () => this.tell('watchStop', id, [])
    signal.addEventListener('abort', stop)
    try {
      while (!signal.aborted) {
        type Next = IteratorResult<{ cursor: Cursor; event: Event }> | undefined
        const next = await this.call<Next>('watchNext', [id])
        if (!next || next.done || signal.aborted) return
        yield next.value
      }
    } finally {
      signal.removeEventListener('abort', stop)
      stop()
    }
  }

  async close(): Promise<void> {
    if (this.#status.state === 'closed') return
    const port = this.#port
    if (port) await this.call('close', []).catch(() => {})
    this.#port = undefined
    this.#fail(new AbortedError('the client is closed'))
    this.#become({ state: 'closed' })
    this.#listeners.clear()
    await port?.close()
  }

  // --- Caller ---

  sharedClockMs(): number {
    return this.#options.sharedClockMs()
  }

  call<T>(
    method: string,
    args: readonly unknown[],
    options: CallOptions = {},
    atOnce: (value: T) => void = () => {},
  ): Promise<T> {
    if (this.#status.state === 'closed') return Promise.reject(new AbortedError('the client is closed'))
    if (this.#pending.size >= CALLS_MAX) return Promise.reject(new LimitError(`${CALLS_MAX} calls are open`))
    const { session, signal } = options
    const port = this.#openPort()
    const id = ++this.#lastCall
    return new Promise<T>((resolve, reject) => {
      const abort = () => port.post({ kind: 'abort', id } satisfies ToHost)
      const finish = () => {
        this.#pending.delete(id)
        signal?.removeEventListener('abort', abort)
        if (this.#pending.size === 0) port.keepAlive(false)
      }
      this.#pending.set(id, {
        resolve: (value) => {
          finish()
          atOnce(value as T)
          resolve(value as T)
        },
        reject: (error) => {
          finish()
          reject(error)
        },
      })
      port.keepAlive(true)
      port.post({ kind: 'call', id, method, args, ...(session === undefined ? {} : { session }) } satisfies ToHost)
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort)
    })
  }

  tell(method: string, session: number, args: readonly unknown[]): void {
    this.#port?.post({ kind: 'tell', method, session, args } satisfies ToHost)
  }

  forget(session: RemoteSession): void {
    this.#sessions.delete(session.number)
  }

  #openPort(): OwnedPort {
    if (this.#port) return this.#port
    const port = this.#options.openPort()
    this.#port = port
    port.onMessage = (message: FromHost) => this.#received(message)
    port.onGone = (error) => {
      if (this.#port !== port) return
      this.#port = undefined
      const gone = new UnavailableError(`the thread of the connection has ended: ${error.message}`, { cause: error })
      this.#become({ state: 'connecting', attempt: 0, lastError: gone })
      this.#fail(gone)
      for (const session of [...this.#sessions.values()]) session.sessionEnded('death')
    }
    return port
  }

  #received(message: FromHost): void {
    switch (message.kind) {
      case 'answer': {
        const pending = this.#pending.get(message.id)
        if (message.error) pending?.reject(decodeError(message.error))
        else pending?.resolve(message.value)
        return
      }
      case 'status':
        if (message.status.state !== 'closed') this.#become(decodeStatus(message.status))
        return
      case 'holdEnded':
        this.#sessions.get(message.session)?.holdEnded(message.hold, message.reason as EndReason, message.text)
        return
      case 'sessionEnded':
        this.#sessions.get(message.session)?.sessionEnded(message.reason as EndReason | 'epoch-changed')
    }
  }

  #fail(error: Error): void {
    for (const pending of [...this.#pending.values()]) pending.reject(error)
  }

  #become(status: EngineStatus): void {
    this.#status = status
    this.#listeners.emit(status)
  }
}
