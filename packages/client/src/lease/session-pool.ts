import { AbortedError, LimitError } from '@leasehold/core'
import type { Elapsed } from './elapsed.js'
import type { Engine, EngineStatus } from '../engine.js'
import type { Hold, HoldWarning } from '../hold/hold.js'
import { LeaseKeeper } from './lease-keeper.js'
import { settled } from '../async/bounded-wait.js'
import type { ClientPlatform } from '../platform.js'

export interface SessionPoolOptions {
  readonly platform: ClientPlatform
  readonly elapsed: Elapsed
  readonly engine: Engine
  readonly prefix: string
  readonly clientName: string
  readonly connectTimeoutMs: number
  readonly onWarning: (hold: Hold, warning: HoldWarning) => void
}

/** Sessions of one client with one TTL. The second and later ones are opened only when all others have no request numbers left. */
const SESSIONS_PER_TTL_MAX = 64

interface TtlSessions {
  readonly ttlMs: number
  readonly marginMs: number
  readonly keepers: LeaseKeeper[]
  opening: Promise<LeaseKeeper> | undefined
}

/**
 * The sessions of one client: one per TTL (and margin), opened once even under concurrent first use. A session that has
 * too many open requests (a waiter blocks the window of request numbers) gets a second one beside it.
 */
export class SessionPool {
  readonly #options: SessionPoolOptions
  readonly #lanes = new Map<string, TtlSessions>()
  readonly #all = new Set<LeaseKeeper>()
  readonly #openings = new Set<Promise<LeaseKeeper>>()
  /** The entry of the last call: there is seldom another one. */
  #last: TtlSessions | undefined
  #closed = false

  constructor(options: SessionPoolOptions) {
    this.#options = options
  }

  get keepers(): ReadonlySet<LeaseKeeper> {
    return this.#all
  }

  get closed(): boolean {
    return this.#closed
  }

  /** A live session with room for a request, if one is open. */
  ready(ttlMs: number, marginMs: number): LeaseKeeper | undefined {
    let lane = this.#last
    if (lane?.ttlMs !== ttlMs || lane.marginMs !== marginMs) {
      lane = this.#lanes.get(ttlKey(ttlMs, marginMs))
      this.#last = lane
    }
    return lane?.keepers.find(hasRoom)
  }

  get engineStatus(): EngineStatus {
    return this.#options.engine.status
  }

  /** A live session with room for a request. */
  async get(ttlMs: number, marginMs: number): Promise<LeaseKeeper> {
    const key = ttlKey(ttlMs, marginMs)
    let lane = this.#lanes.get(key)
    if (!lane) {
      lane = { ttlMs, marginMs, keepers: [], opening: undefined }
      this.#lanes.set(key, lane)
    }
    const free = lane.keepers.find(hasRoom)
    if (free) return free
    if (lane.opening) return lane.opening
    if (lane.keepers.length >= SESSIONS_PER_TTL_MAX) {
      throw new LimitError(`${SESSIONS_PER_TTL_MAX} sessions of this client are full of open requests`)
    }
    const opening = this.#open(ttlMs, marginMs, lane)
    lane.opening = opening
    try {
      return await opening
    } finally {
      lane.opening = undefined
    }
  }

  /** A session for one acquire, which ends with it. */
  dedicated(ttlMs: number, marginMs: number): Promise<LeaseKeeper> {
    return this.#open(ttlMs, marginMs, undefined)
  }

  /** Refuses to open sessions from now on, and ends all waiting. */
  refuse(): void {
    this.#closed = true
    for (const keeper of this.#all) keeper.session.cancelAcquires('the client was closed')
  }

  /** Ends all sessions cleanly, as far as the service answers within `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true
    const { elapsed, platform } = this.#options
    const endAt = elapsed.now() + timeoutMs
    if (this.#openings.size > 0) await settled(platform, Promise.allSettled([...this.#openings]), timeoutMs)
    // Whole milliseconds, and at least one: holds must be lost here in any case.
    const leftMs = Math.max(1, Math.round(endAt - elapsed.now()))
    await Promise.all([...this.#all].map((keeper) => keeper.close(leftMs)))
  }

  #open(ttlMs: number, marginMs: number, lane: TtlSessions | undefined): Promise<LeaseKeeper> {
    const opening = this.#openNow(ttlMs, marginMs, lane)
    this.#openings.add(opening)
    const done = () => {
      this.#openings.delete(opening)
    }
    opening.then(done, done)
    return opening
  }

  async #openNow(ttlMs: number, marginMs: number, lane: TtlSessions | undefined): Promise<LeaseKeeper> {
    if (this.#closed) throw closedError()
    const { engine, elapsed, platform, clientName, connectTimeoutMs, prefix, onWarning } = this.#options
    const sentAt = elapsed.now()
    const session = await engine.openSession({
      ttlMs,
      marginMs,
      client: clientName,
      timeoutMs: connectTimeoutMs,
    })
    const keeper = new LeaseKeeper({
      platform,
      elapsed,
      session,
      sentAt,
      ttlMs,
      marginMs,
      prefix,
      answerTimeoutMs: connectTimeoutMs,
      dedicated: lane === undefined,
      onWarning,
      onEnd: (ended) => this.#remove(ended, lane),
    })
    if (this.#closed) {
      void keeper.close(connectTimeoutMs)
      throw closedError()
    }
    if (keeper.live) {
      this.#all.add(keeper)
      lane?.keepers.push(keeper)
    }
    return keeper
  }

  #remove(keeper: LeaseKeeper, lane: TtlSessions | undefined): void {
    this.#all.delete(keeper)
    const position = lane?.keepers.indexOf(keeper) ?? -1
    if (position >= 0) lane?.keepers.splice(position, 1)
  }
}

function ttlKey(ttlMs: number, marginMs: number): string {
  return `${ttlMs}/${marginMs}`
}

function hasRoom(keeper: LeaseKeeper): boolean {
  return keeper.check() && !keeper.session.congested
}

export function closedError(): AbortedError {
  return new AbortedError('the client is closed', { hint: 'locks.close() was called before' })
}
