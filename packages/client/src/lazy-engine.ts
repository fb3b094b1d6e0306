import { AbortedError, type Cursor, type Event, type Query, type QueryResult } from '@leasehold/core'
import { Emitter } from './async/emitter.js'
import type { Capabilities, Engine, EngineRegister, EngineSession, EngineStatus, OpenSessionOptions } from './engine.js'
import { type ClientPlatform, defaultPlatform } from './platform.js'

const LOADING: EngineStatus = { state: 'connecting', attempt: 1 }

/** An engine that is made when it is first needed: a client needs no connection, file or module before that. */
export class LazyEngine implements Engine {
  readonly name: string
  readonly capabilities: Capabilities
  readonly #load: () => Promise<Engine>
  readonly #listeners: Emitter<EngineStatus>
  #loading: Promise<Engine> | undefined
  #engine: Engine | undefined
  #closed = false

  /** `capabilities` must be those of the engine that `load` will make. */
  constructor(
    options: { name: string; capabilities: Capabilities; load: () => Promise<Engine> },
    platform: ClientPlatform = defaultPlatform,
  ) {
    this.name = options.name
    this.capabilities = options.capabilities
    this.#load = options.load
    this.#listeners = new Emitter(platform)
  }

  get status(): EngineStatus {
    if (this.#closed) return { state: 'closed' }
    return this.#engine?.status ?? (this.#loading ? LOADING : { state: 'idle' })
  }

  onStatus(listener: (status: EngineStatus) => void): () => void {
    return this.#listeners.add(listener)
  }

  async connect(timeoutMs: number): Promise<void> {
    return (await this.#get()).connect(timeoutMs)
  }

  async openSession(options: OpenSessionOptions): Promise<EngineSession> {
    return (await this.#get()).openSession(options)
  }

  async query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }> {
    return (await this.#get()).query(query, options)
  }

  async steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void> {
    return (await this.#get()).steal(hold, options)
  }

  async endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void> {
    return (await this.#get()).endSession(session, options)
  }

  async getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined> {
    return (await this.#get()).getRegister(key, options)
  }

  async *watch(options: {
    prefix: string
    from?: Cursor
    signal: AbortSignal
  }): AsyncGenerator<{ cursor: Cursor; event: Event }, void, void> {
    yield* (await this.#get()).watch(options)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const engine = await this.#loading?.catch(() => undefined)
    await engine?.close()
    if (!engine) this.#listeners.emit({ state: 'closed' })
    this.#listeners.clear()
  }

  /** A failed load is tried again with the next call. */
  #get(): Promise<Engine> {
    if (this.#closed) return Promise.reject(new AbortedError('the client is closed'))
    if (this.#loading) return this.#loading
    this.#loading = this.#load().then(
      (engine) => {
        this.#engine = engine
        engine.onStatus((status) => this.#listeners.emit(status))
        return engine
      },
      (error: unknown) => {
        this.#loading = undefined
        this.#listeners.emit({ state: 'idle' })
        throw error
      },
    )
    this.#listeners.emit(LOADING)
    return this.#loading
  }
}
