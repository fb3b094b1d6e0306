import {
  AcquireTimeoutError,
  BusyError,
  checkName,
  type Cursor,
  type Duration,
  formatCursor,
  InvalidError,
  NotHolderError,
  parseCursor,
  parseDuration,
  parseToken,
} from '@leasehold/core'
import { type AcquireContext, acquireHold, isWindowFull, applyTerms } from './hold/acquire-hold.js'
import { requireAbility, requireAcquire } from './capabilities.js'
import { Elapsed } from './lease/elapsed.js'
import { Election } from './coordination/election.js'
import { Emitter } from './async/emitter.js'
import type { Engine, EngineStatus } from './engine.js'
import { type LiveStateContext, RESYNC_PAUSE_MS } from './coordination/live-state.js'
import type { Hold, HoldWarning } from './hold/hold.js'
import { type OnceOptions, runOnce } from './coordination/once.js'
import {
  type AcquireOptions,
  type AcquirePlan,
  acquirePlan,
  checkFlag,
  checkKeys,
  type ClientSettings,
  clientSettings,
  describe,
  type LockNames,
  type LocksOptions,
  NO_OPTIONS,
  type RequestOptions,
  signalOf,
} from './options.js'
import { type ClientPlatform, defaultPlatform } from './platform.js'
import { closedError, SessionPool } from './lease/session-pool.js'
import { bounded, delay, linkedController, settled } from './async/bounded-wait.js'
import { keepAlive } from './async/timers.js'
import { Register } from './coordination/register.js'
import { runWithHold } from './hold/run-with-hold.js'
import { deserializeHold } from './hold/serialized-hold.js'
import {
  checkPrefix,
  checkQuery,
  type LocksView,
  type QueryOptions,
  NamespaceView,
  type WatchEvent,
} from './namespace-view.js'

export type AdoptOptions = Pick<AcquireOptions, 'ttl' | 'margin' | 'signal' | 'renew' | 'maxHold'>

export interface WatchOptions {
  /** Locks and registers under this prefix, by whole path segments. Default: all of the client's namespace. */
  readonly prefix?: string
  /** `cursor` of an event, or `at` of a query answer. Default: from now on. */
  readonly from?: string
  /** Ends the iteration. */
  readonly signal?: AbortSignal
}

/** How long `close` waits for a service that does not answer. */
const CLOSE_LIMIT_MS = 5_000

/** A warning of any hold of the client. */
export type LocksWarning = HoldWarning & { readonly hold: Hold }

type Body<H, T> = (hold: H) => T | Promise<T>

/**
 * The client. Made by `createLocks` (of the package `leasehold`) or {@link createLocksOn}; connects on first use.
 *
 * @example
 * await locks.request('billing/invoice-42', async (hold) => {
 *   await guard.with(hold, async (tx) => { … })
 * })
 */
export class Locks implements AsyncDisposable {
  readonly #engine: Engine
  readonly #settings: ClientSettings
  readonly #platform: ClientPlatform
  readonly #elapsed: Elapsed
  readonly #pool: SessionPool
  readonly #view: NamespaceView
  readonly #warnings: Emitter<LocksWarning>
  readonly #acquires: AcquireContext
  readonly #watches = new Set<AbortController>()
  #closing: Promise<void> | undefined

  /** @internal */
  constructor(engine: Engine, settings: ClientSettings, platform: ClientPlatform) {
    this.#engine = engine
    this.#settings = settings
    this.#platform = platform
    this.#elapsed = new Elapsed(platform)
    this.#view = new NamespaceView(settings.prefix)
    this.#warnings = new Emitter(platform)
    const { connectTimeoutMs, clientName, prefix } = settings
    const shared = { platform, elapsed: this.#elapsed, connectTimeoutMs }
    this.#pool = new SessionPool({
      ...shared,
      engine,
      prefix,
      clientName,
      onWarning: (hold, warning) => this.#warnings.emit({ ...warning, hold }),
    })
    this.#acquires = { ...shared, pool: this.#pool }
  }

  /** Connects now. @throws UnavailableError, AccessError */
  async connect(): Promise<this> {
    if (this.#closing) throw closedError()
    await this.#engine.connect(this.#settings.connectTimeoutMs)
    return this
  }

  /** The state of the connection. It does not tell whether any hold is held. */
  get status(): EngineStatus {
    return this.#engine.status
  }

  on(event: 'status', listener: (status: EngineStatus) => void): () => void
  on(event: 'warning', listener: (warning: LocksWarning) => void): () => void
  on(event: 'status' | 'warning', listener: ((status: EngineStatus) => void) | ((warning: LocksWarning) => void)) {
    if (event === 'status') return this.#engine.onStatus(listener as (status: EngineStatus) => void)
    if (event === 'warning') return this.#warnings.add(listener as (warning: LocksWarning) => void)
    throw new InvalidError(`locks have no event ${describe(event)}`, { hint: "they have 'status' and 'warning'" })
  }

  /**
   * Waits for the locks and resolves with a hold of all of them. All or nothing.
   * @throws BusyError (`wait: 0`), AcquireTimeoutError, AbortedError, UnavailableError, InvalidError, LimitError
   */
  acquire(names: LockNames, options: AcquireOptions = NO_OPTIONS): Promise<Hold> {
    try {
      return this.#acquire(acquirePlan(names, options, this.#settings, 'acquire'))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Acquires the locks if they are free now, and resolves with null otherwise. An unreachable service is an error. */
  async tryAcquire(names: LockNames, options: Omit<AcquireOptions, 'wait'> = {}): Promise<Hold | null> {
    const given: AcquireOptions = options
    if (given.wait !== undefined) throw new InvalidError('tryAcquire never waits', { hint: 'use acquire with wait' })
    return this.#ifAvailable(acquirePlan(names, options, this.#settings, 'tryAcquire'))
  }

  /**
   * Runs `body` under a hold of the locks, and resolves with its value after the release.
   * Rejects with the body's own error; with `HoldLostError` (value in `.result`) if the hold was lost meanwhile.
   */
  request<T>(names: LockNames, body: Body<Hold, T>): Promise<T>
  request<T>(names: LockNames, options: RequestOptions & { ifAvailable: true }, body: Body<Hold | null, T>): Promise<T>
  request<T>(names: LockNames, options: RequestOptions & { ifAvailable?: false }, body: Body<Hold, T>): Promise<T>
  async request<T>(names: LockNames, ...rest: readonly unknown[]): Promise<T> {
    const [options, body] = rest.length === 1 ? [NO_OPTIONS, rest[0]] : (rest as [RequestOptions, unknown])
    if (typeof body !== 'function') {
      throw new InvalidError('request needs a function to run under the lock', {
        hint: "locks.request('name', async (hold) => { … })",
      })
    }
    const plan = acquirePlan(names, options, this.#settings, 'request')
    if (!checkFlag(options.ifAvailable, 'ifAvailable'))
      return runWithHold(await this.#acquire(plan), body as Body<Hold, T>)
    if (options.wait !== undefined) throw new InvalidError('ifAvailable does not wait: leave wait out')
    const hold = await this.#ifAvailable(plan)
    return hold ? runWithHold(hold, body as Body<Hold, T>) : (body as Body<null, T>)(null)
  }

  /**
   * Adopts a hold that another process has handed over with `hold.serialize()`, under a new id and a new, greater
   * token; the other process's handle is lost (`moved`).
   * @throws NotHolderError: the hold has ended, or was adopted already
   */
  async adopt(text: string, options: AdoptOptions = {}): Promise<Hold> {
    checkKeys(options, ['ttl', 'margin', 'signal', 'renew', 'maxHold'], 'adopt')
    const { id, secret, persistent } = deserializeHold(text)
    const plan = acquirePlan('adopt', options, this.#settings)
    if (this.#closing) throw closedError()
    requireAbility(this.#engine, persistent ? 'persistent holds' : 'portable holds')
    const dedicated = !plan.renew || plan.maxHoldMs !== Number.POSITIVE_INFINITY
    const { ttlMs, marginMs, signal } = plan
    for (;;) {
      const opening = dedicated ? this.#pool.dedicated(ttlMs, marginMs) : this.#pool.get(ttlMs, marginMs)
      const keeper = await bounded(this.#platform, opening, { what: 'adopt', signal })
      // Other requests may have taken its last request numbers meanwhile.
      if (keeper.session.congested && keeper.live) continue
      const timeoutMs = Math.max(1, keeper.remaining())
      try {
        const hold = await keeper.grantHold(() => keeper.session.adopt({ id, secret, timeoutMs }), { persistent })
        if (hold && (await applyTerms(keeper, hold, { ...plan, persistent }))) return hold
      } catch (error) {
        if (isWindowFull(error, keeper)) continue
        throw error
      }
      throw new NotHolderError('the hold was adopted, and lost before it could be used')
    }
  }

  /** Holds, waiters and sessions: one consistent picture, linearizable unless `stale`. */
  async query(options: QueryOptions = {}): Promise<LocksView> {
    checkQuery(options)
    const { stale, prefix, name, ...page } = options
    if (this.#closing) throw closedError()
    const scope = this.#settings.prefix === '' ? prefix : this.#view.full(prefix ?? '')
    const answer = await this.#engine.query(
      {
        ...page,
        ...(name === undefined ? {} : { name: this.#view.full(checkName(name)) }),
        ...(scope === undefined || name !== undefined ? {} : { prefix: scope }),
      },
      { stale: checkFlag(stale, 'stale'), timeoutMs: this.#timeoutMs },
    )
    return this.#view.answer(answer)
  }

  /** Events of locks, sessions and registers, without gap or repeat. @throws WatchError (`gap`), EpochChangedError */
  async *watch(options: WatchOptions = {}): AsyncGenerator<WatchEvent, void, void> {
    checkKeys(options, ['prefix', 'from', 'signal'], 'watch')
    checkPrefix(options.prefix)
    const from: Cursor | undefined = options.from === undefined ? undefined : parseCursor(options.from)
    const signal = signalOf(options.signal)
    if (this.#closing) throw closedError()
    requireAbility(this.#engine, 'watch')
    const { controller, unlink } = linkedController(this.#platform.abortController(), signal)
    this.#watches.add(controller)
    const prefix = this.#view.full(options.prefix ?? '')
    let waitEnds = keepAlive(this.#platform)
    try {
      const events = this.#engine.watch({ prefix, signal: controller.signal, ...(from === undefined ? {} : { from }) })
      for await (const { cursor, event } of events) {
        waitEnds()
        yield { cursor: formatCursor(cursor), ...this.#view.event(event, cursor.epoch) } as WatchEvent
        waitEnds = keepAlive(this.#platform)
      }
    } finally {
      waitEnds()
      this.#watches.delete(controller)
      unlink()
      controller.abort()
    }
  }

  /**
   * Ends all holds of a lock against their owners' will: they are lost (`stolen`), and their tokens become stale as soon
   * as the next holder opens the resource. Resolves with the number of holds that were ended.
   */
  async steal(name: string, options: { reason: string }): Promise<{ stolen: number }> {
    // Without a name this would be every hold of the namespace.
    checkName(name)
    checkKeys(options ?? {}, ['reason'], 'steal')
    if (typeof options?.reason !== 'string' || options.reason === '') {
      throw new InvalidError('steal needs a reason, for the holder and the log', {
        hint: "locks.steal('name', { reason: 'stuck since 3 h' })",
      })
    }
    let stolen = 0
    let cursor: string | undefined
    do {
      const page = await this.query({ name, ...(cursor === undefined ? {} : { cursor }) })
      for (const row of page.held) if (await this.#stealOne(row.id, options.reason)) stolen++
      cursor = page.next
    } while (cursor !== undefined)
    return { stolen }
  }

  /**
   * Ends a session (its id is in the rows of `query`) against its owner's will: its holds are lost, its waits end, and lock
   * delays count.
   * @throws SessionEndedError: the session does not exist (any more)
   */
  async endSession(session: bigint, options: { reason: string }): Promise<void> {
    checkKeys(options ?? {}, ['reason'], 'endSession')
    const { reason } = options ?? {}
    if (typeof reason !== 'string') throw new InvalidError('endSession needs a reason, for the client of the session')
    if (this.#closing) throw closedError()
    await this.#engine.endSession(parseToken(session), { reason, timeoutMs: this.#timeoutMs })
  }

  election(name: string): Election {
    checkName(name)
    return new Election(
      {
        acquire: (lock, options) => this.acquire(lock, options),
        request: (lock, options, body) => this.request(lock, { ...options, ifAvailable: false }, body),
        query: (options) => this.query(options),
        ...this.#liveStateContext,
      },
      name,
    )
  }

  register(key: string): Register {
    requireAbility(this.#engine, 'registers')
    const context = {
      engine: this.#engine,
      timeoutMs: this.#timeoutMs,
      fullName: (name: string) => this.#view.full(name),
      shortName: (full: string) => this.#view.name(full),
      session: async () => {
        if (this.#closing) throw closedError()
        const { ttlMs, marginMs } = acquirePlan('register', {}, this.#settings)
        return (await this.#pool.get(ttlMs, marginMs)).session
      },
      position: async () => (await this.query({ name: key, limit: 1 })).at,
      ...this.#liveStateContext,
    }
    return new Register(context, key)
  }

  get #liveStateContext(): LiveStateContext {
    return {
      watch: (prefix, from, signal) => this.watch({ prefix, from, signal }),
      abortController: () => this.#platform.abortController(),
      pause: () => delay(this.#platform, RESYNC_PAUSE_MS),
    }
  }

  /**
   * Runs `run` once per slot over all instances; `{ ran: false }` if this slot was claimed before, or is a time that 100 later ones
   * have passed.
   */
  once<T>(name: string, options: OnceOptions, run: Body<Hold, T>): Promise<{ ran: false } | { ran: true; value: T }> {
    const context = {
      request: <R>(lock: string, acquire: AcquireOptions, body: (hold: Hold) => Promise<R>) =>
        this.request(lock, { ...acquire, ifAvailable: false }, body),
      register: (key: string) => this.register(key),
      wallMs: () => this.#platform.wallMs(),
    }
    return runOnce(context, name, options, run)
  }

  /**
   * Rejects new requests, waits up to `drain` until all holds are released, then ends the sessions cleanly (remaining
   * holds are lost, `closed`) and the connection. Persistent holds stay. Without an answer of the service it gives up
   * after 5 s (after `connectTimeout`, if that is shorter), and the sessions end by their TTL.
   */
  async close(options: { drain?: Duration } = {}): Promise<void> {
    checkKeys(options, ['drain'], 'close')
    const drainMs = options.drain === undefined ? 0 : parseDuration(options.drain, 'drain', { infinite: true })
    this.#closing ??= this.#closeAlive(drainMs)
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #closeAlive(drainMs: number): Promise<void> {
    const waitEnds = keepAlive(this.#platform)
    try {
      await this.#close(drainMs)
    } finally {
      waitEnds()
    }
  }

  async #close(drainMs: number): Promise<void> {
    this.#pool.refuse()
    const endAt = this.#elapsed.now() + drainMs
    for (const watch of this.#watches) watch.abort()
    while (drainMs > 0) {
      const holds = [...this.#pool.keepers].flatMap((keeper) => [...keeper.holds])
      const open: Promise<unknown>[] = holds.filter((hold) => !hold.persistent).map((hold) => hold.lost)
      for (const keeper of this.#pool.keepers) open.push(...keeper.releases)
      const remainingMs = endAt - this.#elapsed.now()
      if (open.length === 0 || remainingMs <= 0) break
      await settled(this.#platform, Promise.allSettled(open), remainingMs)
    }
    await this.#pool.close(Math.min(this.#timeoutMs, CLOSE_LIMIT_MS))
    await this.#engine.close()
    this.#warnings.clear()
  }

  #acquire(plan: AcquirePlan): Promise<Hold> {
    if (this.#closing) throw closedError()
    requireAcquire(this.#engine, plan)
    return acquireHold(this.#acquires, plan)
  }

  async #ifAvailable(plan: AcquirePlan): Promise<Hold | null> {
    try {
      return await this.#acquire({ ...plan, waitMs: 0 })
    } catch (error) {
      if (error instanceof BusyError || error instanceof AcquireTimeoutError) return null
      throw error
    }
  }

  async #stealOne(id: bigint, reason: string): Promise<boolean> {
    try {
      await this.#engine.steal(id, { actor: this.#settings.clientName, reason, timeoutMs: this.#timeoutMs })
      return true
    } catch (error) {
      if (error instanceof NotHolderError) return false
      throw error
    }
  }

  get #timeoutMs(): number {
    return this.#settings.connectTimeoutMs
  }
}

/** Makes a client on an engine. The package `leasehold` has `createLocks(url)`, which chooses the engine by the URL. */
export function createLocksOn(
  engine: Engine,
  options: LocksOptions = {},
  extra: { platform?: ClientPlatform; knownOptions?: readonly string[] } = {},
): Locks {
  return new Locks(engine, clientSettings(options, extra.knownOptions), extra.platform ?? defaultPlatform)
}
