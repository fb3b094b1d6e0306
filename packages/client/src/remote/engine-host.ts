import type { LostReason } from '@leasehold/core'
import { SessionEndedError } from '@leasehold/core'
import type { AcquireOptions, Engine, EngineGrant, EngineSession } from '../engine.js'
import { Elapsed } from '../lease/elapsed.js'
import { LeaseKeeper } from '../lease/lease-keeper.js'
import { marginOf } from '../options.js'
import { type ClientPlatform, defaultPlatform } from '../platform.js'
import { SharedLease } from './shared-lease.js'
import { encodeError, encodeStatus } from './thread-codec.js'
import type {
  EngineCallMessage,
  EngineCalls,
  FromHost,
  OpenedSession,
  Port,
  SessionCallMessage,
  SessionCalls,
  SessionNoticeMessage,
  SessionNotices,
  ToHost,
  WatchedEvent,
} from './thread-protocol.js'

export interface HostOptions {
  /** A monotonic clock that shows the same in every thread, in milliseconds. */
  readonly sharedClockMs: () => number
  readonly platform?: ClientPlatform
}

interface HostedSession {
  readonly session: EngineSession
  readonly keeper: LeaseKeeper
  readonly lease: SharedLease
  /** Cancels the next check of a congested session; undefined: none is due. */
  cancelRoomCheck: (() => void) | undefined
}

interface HostedWatch {
  readonly controller: AbortController
  readonly items: AsyncIterator<WatchedEvent>
}

/** Interval of checks of a congested session: it gets room by answers that belong to no call, such as those of cancels. */
const ROOM_CHECK_MS = 50

/** Ended sessions that stay known. */
const ENDED_KEPT_MAX = 1_000

/** A method of `Calls` with what it is called on in front of its arguments. */
type Handlers<Calls, Target extends readonly unknown[]> = {
  readonly [Method in keyof Calls]: Calls[Method] extends (...args: infer Args) => infer Result
    ? (...args: [...Target, ...Args]) => Result
    : never
}

/**
 * The far end of a {@link RemoteEngine}: it owns the connection and renews every session by itself, even if the thread of the
 * holders is blocked. It renews a session until its deadline by this thread's clocks, its end, or its limit.
 */
export class EngineHost {
  readonly #engine: Engine
  readonly #port: Port
  readonly #platform: ClientPlatform
  readonly #elapsed: Elapsed
  readonly #sharedClockMs: () => number
  readonly #sessions = new Map<number, HostedSession>()
  readonly #aborts = new Map<number, AbortController>()
  readonly #watches = new Map<number, HostedWatch>()
  readonly #ended: number[] = []

  readonly #engineCalls: Handlers<EngineCalls, [id: number]> = {
    connect: (_, timeoutMs) => this.#engine.connect(timeoutMs),
    openSession: (_, options) => this.#openSession(options),
    query: (_, query, options) => this.#engine.query(query, options),
    steal: (_, hold, options) => this.#engine.steal(hold, options),
    endSession: (_, session, options) => this.#engine.endSession(session, options),
    getRegister: (_, key, options) => this.#engine.getRegister(key, options),
    watchStart: async (id, options) => this.#watchStart(id, options),
    watchNext: (_, watch) => this.#watchNext(watch),
    close: () => {
      for (const watch of this.#watches.values()) watch.controller.abort()
      return this.#engine.close()
    },
  }

  readonly #sessionCalls: Handlers<SessionCalls, [hosted: HostedSession, id: number]> = {
    renew: ({ session }, _, timeoutMs) => session.renew(timeoutMs),
    acquire: ({ session }, id, options, abortable) =>
      abortable ? this.#acquireAbortably(session, id, options) : session.acquire(options),
    adopt: ({ session }, _, options) => session.adopt(options),
    release: ({ session }, _, hold, options) => session.release(hold, options),
    put: ({ session }, _, options) => session.put(options),
    delete: ({ session }, _, options) => session.delete(options),
    close: ({ keeper }, _, timeoutMs) => keeper.close(timeoutMs),
  }

  readonly #sessionNotices: Handlers<SessionNotices, [hosted: HostedSession]> = {
    limit: ({ keeper }, limitMs) => keeper.limit(limitMs),
    stopRenewing: ({ keeper }) => keeper.stopRenewing(),
    cancelAcquires: ({ session }, why) => session.cancelAcquires(why),
    abandon: ({ keeper }) => keeper.abandon(),
  }

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
    switch (message.kind) {
      case 'engineCall':
        return this.#answer(message.id, this.#callEngine(message))
      case 'sessionCall':
        return this.#answer(message.id, this.#callSession(message))
      case 'sessionNotice':
        return this.#notify(message)
      case 'abort':
        return this.#aborts.get(message.id)?.abort()
      case 'watchStop':
        return this.#watchStop(message.watch)
    }
  }

  #answer(id: number, result: Promise<unknown>): void {
    result.then(
      (value) => this.#post({ kind: 'answer', id, value }),
      (error: unknown) => this.#post({ kind: 'answer', id, error: encodeError(error) }),
    )
  }

  async #callEngine({ id, method, args }: EngineCallMessage): Promise<unknown> {
    return invoke(this.#engineCalls, method, [id, ...args])
  }

  async #callSession({ id, session, method, args }: SessionCallMessage): Promise<unknown> {
    const hosted = this.#sessions.get(session)
    if (!hosted) throw new SessionEndedError(`session ${session} ended long ago`)
    const answer = invoke(this.#sessionCalls, method, [hosted, id, ...args])
    this.#publishCongestion(hosted)
    try {
      return await answer
    } finally {
      this.#publishCongestion(hosted)
    }
  }

  #notify({ session, method, args }: SessionNoticeMessage): void {
    const hosted = this.#sessions.get(session)
    if (hosted) void invoke(this.#sessionNotices, method, [hosted, ...args])
  }

  #publishCongestion(hosted: HostedSession): void {
    const { session, lease, keeper } = hosted
    lease.congested = session.congested
    if (!session.congested || !keeper.live || hosted.cancelRoomCheck) return
    hosted.cancelRoomCheck = this.#platform.after(ROOM_CHECK_MS, () => {
      hosted.cancelRoomCheck = undefined
      this.#publishCongestion(hosted)
    })
  }

  async #acquireAbortably(session: EngineSession, id: number, options: AcquireOptions): Promise<EngineGrant> {
    const controller = this.#platform.abortController()
    this.#aborts.set(id, controller)
    try {
      return await session.acquire({ ...options, signal: controller.signal })
    } finally {
      this.#aborts.delete(id)
    }
  }

  async #openSession(options: Parameters<EngineCalls['openSession']>[0]): Promise<OpenedSession> {
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
    // Holds live in the other thread; only the end of the session concerns this one as well.
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

  /** The session stays known for a while: a persistent hold of it may still be released. */
  #sessionOver(number: number, lease: SharedLease, reason: LostReason): void {
    lease.end(reason)
    this.#sessions.get(number)?.cancelRoomCheck?.()
    this.#ended.push(number)
    if (this.#ended.length > ENDED_KEPT_MAX) this.#sessions.delete(this.#ended.shift() as number)
  }

  #watchStart(id: number, options: Parameters<EngineCalls['watchStart']>[0]): number {
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
    // Its reader is gone: errors have no recipient.
    watch.items.return?.(undefined).catch(() => {})
  }

  async #watchNext(id: number): Promise<IteratorResult<WatchedEvent> | undefined> {
    const watch = this.#watches.get(id)
    if (!watch) return undefined
    let next: IteratorResult<WatchedEvent> | undefined
    try {
      next = await watch.items.next()
      return next
    } finally {
      if (next?.done !== false) this.#watches.delete(id)
    }
  }
}

/** Calls a method by its name. The types of messages pair each name with its arguments, which the compiler cannot follow here. */
function invoke<Calls extends object>(calls: Calls, method: keyof Calls, args: readonly unknown[]): Promise<unknown> {
  const call = calls[method] as ((...args: readonly unknown[]) => Promise<unknown>) | undefined
  if (call === undefined) throw new TypeError(`no method ${String(method)}`)
  return call(...args)
}
