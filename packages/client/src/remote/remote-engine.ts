import { AbortedError, type Cursor, LimitError, type Query, type QueryResult, UnavailableError } from '@leasehold/core'
import { settled } from '../async/bounded-wait.js'
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
import { RemoteSession, type RemoteSessionHost } from './remote-session.js'
import { SharedLease } from './shared-lease.js'
import { decodeError, decodeStatus } from './thread-codec.js'
import type {
  EngineCallMessage,
  EngineCalls,
  EngineMethod,
  FromHost,
  OpenedSession,
  OwnedPort,
  SessionCallMessage,
  SessionCalls,
  SessionMethod,
  SessionNotice,
  SessionNoticeMessage,
  SessionNotices,
  ToHost,
  WatchedEvent,
} from './thread-protocol.js'

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

/** A call without an answer so far. */
interface PendingCall {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** How long the other thread may take to close its engine before it is ended. */
const CLOSE_LIMIT_MS = 2_000
/** Calls that may be open at once. */
const CALLS_MAX = 50_000

/**
 * An engine whose connection and renewals live in another thread, so that holds stay held while this one is busy. When the
 * other thread dies, open calls fail as `unreachable`, its holds are lost, and the next call starts a new thread.
 */
export class RemoteEngine implements Engine, RemoteSessionHost {
  readonly name: string
  readonly capabilities: Capabilities
  readonly platform: ClientPlatform
  readonly #options: RemoteEngineOptions
  readonly #listeners: Emitter<EngineStatus>
  readonly #pending = new Map<number, PendingCall>()
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
    return this.#callEngine('connect', [timeoutMs])
  }

  async openSession(options: OpenSessionOptions): Promise<EngineSession> {
    const number = ++this.#lastSession
    let session: RemoteSession | undefined
    await this.#callEngine('openSession', [{ ...options, number }], (opened: OpenedSession) => {
      session = new RemoteSession(this, { ...opened, number }, new SharedLease(opened.lease))
      // Registered at once: the next message may be the end of this session.
      this.#sessions.set(number, session)
    })
    return session as unknown as RemoteSession
  }

  query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    return this.#callEngine('query', [query, options])
  }

  steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    return this.#callEngine('steal', [hold, options])
  }

  endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    return this.#callEngine('endSession', [session, options])
  }

  getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    return this.#callEngine('getRegister', [key, options])
  }

  async *watch(options: {
    prefix: string
    from?: Cursor
    signal: AbortSignal
  }): AsyncGenerator<WatchedEvent, void, void> {
    const { signal, ...rest } = options
    if (signal.aborted) return
    const watch = await this.#callEngine('watchStart', [rest])
    const stop = () => this.#port?.post({ kind: 'watchStop', watch } satisfies ToHost)
    signal.addEventListener('abort', stop)
    try {
      while (!signal.aborted) {
        const next = await this.#callEngine('watchNext', [watch])
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
    if (port) await settled(this.platform, this.#callEngine('close', []), CLOSE_LIMIT_MS)
    this.#port = undefined
    this.#fail(new AbortedError('the client is closed'))
    this.#become({ state: 'closed' })
    this.#listeners.clear()
    await port?.close()
  }

  // --- What sessions need ---

  sharedClockMs(): number {
    return this.#options.sharedClockMs()
  }

  callSession<Method extends SessionMethod>(
    session: number,
    method: Method,
    args: Parameters<SessionCalls[Method]>,
    signal?: AbortSignal,
  ): ReturnType<SessionCalls[Method]> {
    const message = (id: number) => ({ kind: 'sessionCall', id, session, method, args }) as SessionCallMessage
    return this.#call(message, signal) as ReturnType<SessionCalls[Method]>
  }

  notifySession<Notice extends SessionNotice>(
    session: number,
    method: Notice,
    args: Parameters<SessionNotices[Notice]>,
  ): void {
    this.#port?.post({ kind: 'sessionNotice', session, method, args } as SessionNoticeMessage satisfies ToHost)
  }

  forget(session: RemoteSession): void {
    this.#sessions.delete(session.number)
  }

  #callEngine<Method extends EngineMethod>(
    method: Method,
    args: Parameters<EngineCalls[Method]>,
    onAnswer?: (value: Awaited<ReturnType<EngineCalls[Method]>>) => void,
  ): ReturnType<EngineCalls[Method]> {
    const message = (id: number) => ({ kind: 'engineCall', id, method, args }) as EngineCallMessage
    return this.#call(message, undefined, onAnswer) as ReturnType<EngineCalls[Method]>
  }

  /** Posts a call and waits for its answer. `onAnswer` sees it before the messages that follow. */
  #call<Value>(
    message: (id: number) => ToHost,
    signal: AbortSignal | undefined,
    onAnswer: (value: Value) => void = () => {},
  ): Promise<Value> {
    if (this.#status.state === 'closed') return Promise.reject(new AbortedError('the client is closed'))
    if (this.#pending.size >= CALLS_MAX) return Promise.reject(new LimitError(`${CALLS_MAX} calls are open`))
    const port = this.#openPort()
    const id = ++this.#lastCall
    return new Promise<Value>((resolve, reject) => {
      const abort = () => port.post({ kind: 'abort', id } satisfies ToHost)
      const finish = () => {
        this.#pending.delete(id)
        signal?.removeEventListener('abort', abort)
        if (this.#pending.size === 0) port.keepAlive(false)
      }
      this.#pending.set(id, {
        resolve: (value) => {
          finish()
          onAnswer(value as Value)
          resolve(value as Value)
        },
        reject: (error) => {
          finish()
          reject(error)
        },
      })
      port.keepAlive(true)
      port.post(message(id))
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort)
    })
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
        this.#sessions.get(message.session)?.holdEnded(message.hold, message.reason, message.text)
        return
      case 'sessionEnded':
        this.#sessions.get(message.session)?.sessionEnded(message.reason)
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
