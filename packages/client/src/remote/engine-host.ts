import type { Cursor, Event, LostReason, Query } from '@leasehold/core'
import { SessionEndedError } from '@leasehold/core'
import { Elapsed } from '../lease/elapsed.js'
import type { AcquireOptions, Engine, EngineSession } from '../engine.js'
import { LeaseKeeper } from '../lease/lease-keeper.js'
import { marginOf } from '../options.js'
import { type ClientPlatform, defaultPlatform } from '../platform.js'
import { encodeError, encodeStatus } from './thread-codec.js'
import type { CallMessage, FromHost, Port, ToHost } from './port.js'
import { SharedLease } from './shared-lease.js'

export interface HostOptions {
  /** A monotonic clock that shows the same in every thread, in milliseconds. */
  readonly sharedClockMs: () => number
  readonly platform?: ClientPlatform
}

interface HostedSession {
  readonly session: EngineSession
  readonly keeper: LeaseKeeper
  readonly lease: SharedLease
  /** Ends looking for room in a crowded session; undefined: nobody looks. */
  cancelRoomCheck: (() => void) | undefined
}

/** A crowded session is looked at so often: it gets room again by answers that belong to no call, such as those of cancels. */
const ROOM_CHECK_MS = 50

/** Sessions that have ended, and are still known here. */
const ENDED_KEPT_MAX = 1_000

interface OpenOptions {
  /** Names the session between the two threads. */
  readonly number: number
  readonly ttlMs: number
  readonly marginMs?: number
  readonly client: string
  readonly timeoutMs: number
}

/**
 * The far end of a {@link RemoteEngine}: owns the connection and renews every session by itself, whatever the thread of
 * the holders does. A session is renewed here until its deadline by this thread's clocks, its end, or its limit.
 */
export class EngineHost {
  readonly #engine: Engine
  readonly #port: Port
  readonly #platform: ClientPlatform
  readonly #elapsed: Elapsed
  readonly #sharedClockMs: () => number
  readonly #sessions = new Map<number, HostedSession>()
  readonly #aborts = new Map<number, AbortController>()
  readonly #watches = new Map<number, { controller: AbortController; items: AsyncIterator<unknown> }>()
  readonly #ended: number[] = []

  constructor(engine: Engine, port: Port, options: HostOptions) {
    this.#engine = engine
    this.#port = port
    this.#platform = options.platform ?? defaultPlatform
    this.#elapsed = new Elapsed(this.#platform)
    this.#sharedClockMs = options.sharedClockMs
    engine.onStatus((status) => this.#post({ kind: 'status', status: encodeStatus(status) }))
    port.onMessage = (message: ToHost) => this.#received(message)
  }

  #post(message: FromHost): void {
    this.#port.post(message)
  }

  #received(message: ToHost): void {
    if (message.kind === 'abort') return this.#aborts.get(message.id)?.abort()
    if (message.kind === 'tell') return this.#told(message)
    this.#call(message).then(
      (value) => this.#post({ kind: 'answer', id: message.id, value }),
      (error: unknown) => this.#post({ kind: 'answer', id: message.id, error: encodeError(error) }),
    )
  }

  #told(message: ToHost & { kind: 'tell' }): void {
    const { method, args } = message
    if (method === 'watchStop') return this.#watchStop(message.session)
    const served = this.#sessions.get(message.session)
    if (!served) return
    if (method === 'limit') served.keeper.limit(args[0] as number)
    else if (method === 'stopRenewing') served.keeper.stopRenewing()
    else if (method === 'cancelAcquires') served.session.cancelAcquires(args[0] as string)
    else if (method === 'abandon') served.keeper.abandon()
  }

  async #call(message: CallMessage): Promise<unknown> {
    const { method, args, session } = message
    if (session !== undefined) return this.#onSession(message, session)
    const [first, second] = args as [never, never]
    switch (method) {
      case 'connect':
        return this.#engine.connect(first)
      case 'openSession':
        return this.#open(first)
      case 'query':
        return this.#engine.query(first as Query, second)
      case 'steal':
        return this.#engine.steal(first, second)
      case 'endSession':
        return this.#engine.endSession(first, second)
      case 'getRegister':
        return this.#engine.getRegister(first, second)
      case 'watchStart':
        return this.#watchStart(message.id, first)
      case 'watchNext':
        return this.#watchNext(first)
      case 'close':
        for (const watch of this.#watches.values()) watch.controller.abort()
        return this.#engine.close()
    }
    throw new TypeError(`no method ${method}`)
  }

  async #onSession(message: CallMessage, number: number): Promise<unknown> {
    const served = this.#sessions.get(number)
    const [first, second] = message.args as [never, never]
    if (!served) throw new SessionEndedError(`session ${number} has ended long ago`)
    const { session, keeper } = served
    const work = (): Promise<unknown> => {
      switch (message.method) {
        case 'renew':
          return session.renew(first)
        case 'acquire':
          return second ? this.#acquire(session, message.id, first) : session.acquire(first)
        case 'adopt':
          return session.adopt(first)
        case 'release':
          return session.release(first, second)
        case 'put':
          return session.put(first)
        case 'delete':
          return session.delete(first)
        case 'close':
          return keeper.close(first)
      }
      return Promise.reject(new TypeError(`no method ${message.method}`))
    }
    const answer = work()
    this.#publishCongestion(served)
    try {
      return await answer
    } finally {
      this.#publishCongestion(served)
    }
  }

  #publishCongestion(served: HostedSession): void {
    const { session, lease, keeper } = served
    lease.congested = session.congested
    if (!session.congested || !keeper.live || served.cancelRoomCheck) return
    served.cancelRoomCheck = this.#platform.after(ROOM_CHECK_MS, () => {
      served.cancelRoomCheck = undefined
      this.#publishCongestion(served)
    })
  }

  async #acquire(session: EngineSession, id: number, options: AcquireOptions): Promise<unknown> {
    const controller = this.#platform.abortController()
    this.#aborts.set(id, controller)
    try {
      return await session.acquire({ ...options, signal: controller.signal })
    } finally {
      this.#aborts.delete(id)
    }
  }

  async #open(options: OpenOptions): Promise<unknown> {
    const { number, ttlMs, marginMs = marginOf(ttlMs, undefined), timeoutMs } = options
    const sentAt = this.#elapsed.now()
    const session = await this.#engine.openSession(options)
    const lease = new SharedLease()
    const keeper = new LeaseKeeper({
      platform: this.#platform,
      elapsed: this.#elapsed,
      session,
      sentAt,
      ttlMs,
      marginMs,
      prefix: '',
      answerTimeoutMs: timeoutMs,
      dedicated: false,
      onAcknowledged: (at) => this.#acknowledged(lease, at),
      onEnd: (ended) => this.#sessionOver(number, lease, ended.ended?.reason ?? 'expired'),
      onWarning: () => {},
    })
    // The ends of holds are for the other thread; only the session's own matters here as well.
    session.listener = {
      holdEnded: (hold, reason, text) => this.#post({ kind: 'holdEnded', session: number, hold, reason, text }),
      sessionEnded: (reason) => {
        keeper.sessionEnded(reason)
        this.#post({ kind: 'sessionEnded', session: number, reason })
      },
    }
    this.#sessions.set(number, { session, keeper, lease, cancelRoomCheck: undefined })
    return { id: session.id, ttlMs: session.ttlMs, lease: lease.buffer }
  }

  #acknowledged(lease: SharedLease, sentAt: number): void {
    // Clocks first: the time in between makes the sending look earlier.
    const monotonicMs = this.#sharedClockMs()
    const wallMs = this.#platform.wallMs()
    const agoMs = this.#elapsed.now() - sentAt
    lease.acknowledged(monotonicMs - agoMs, wallMs - agoMs)
  }

  /** It stays known for a while: a persistent hold of it may still be released. */
  #sessionOver(number: number, lease: SharedLease, reason: LostReason): void {
    lease.end(reason)
    this.#sessions.get(number)?.cancelRoomCheck?.()
    this.#ended.push(number)
    if (this.#ended.length > ENDED_KEPT_MAX) this.#sessions.delete(this.#ended.shift() as number)
  }

  #watchStart(id: number, options: { prefix: string; from?: Cursor }): number {
    const controller = this.#platform.abortController()
    const items = this.#engine.watch({ ...options, signal: controller.signal })[Symbol.asyncIterator]()
    this.#watches.set(id, { controller, items })
    return id
  }

  #watchStop(id: number): void {
    const watch = this.#watches.get(id)
    if (!watch) return
    this.#watches.delete(id)
    watch.controller.abort()
    // Nobody asks for what it ends with.
    watch.items.return?.(undefined).catch(() => {})
  }

  async #watchNext(id: number): Promise<IteratorResult<{ cursor: Cursor; event: Event }> | undefined> {
    const watch = this.#watches.get(id)
    if (!watch) return undefined
    let next: IteratorResult<unknown> | undefined
    try {
      next = await watch.items.next()
      return next as IteratorResult<{ cursor: Cursor; event: Event }>
    } finally {
      if (next?.done !== false) this.#watches.delete(id)
    }
  }
}
