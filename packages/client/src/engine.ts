import type {
  Cursor,
  EndReason,
  Event,
  LockRequest,
  LostReason,
  Mode,
  Query,
  QueryResult,
  Token,
} from '@leasehold/core'
import type { SessionEndReason } from './end-reasons.js'

/**
 * A keeper of lock state, as the client sees it: a Leasehold server or cluster, an embedded replica, etcd, PostgreSQL.
 * An engine uses full 63-bit ids. It never decides by itself that a hold is lost because time has passed: deadlines
 * belong to the client. All failures are `LeaseholdError`s.
 */
export interface Engine {
  /** For messages: `http://127.0.0.1:4100`, `memory:test`, … */
  readonly name: string
  readonly capabilities: Capabilities
  /** Connects now, within `timeoutMs`. Idempotent. Every other call connects by itself when needed. */
  connect(timeoutMs: number): Promise<void>
  readonly status: EngineStatus
  onStatus(listener: (status: EngineStatus) => void): () => void

  /** Opens a session. The lease counts from before this call, so a slow connect only shortens it. */
  openSession(options: OpenSessionOptions): Promise<EngineSession>

  query(query: Query, options: { stale: boolean; timeoutMs: number }): Promise<QueryResult & { epoch: number }>
  steal(hold: bigint, options: { actor: string; reason: string; timeoutMs: number }): Promise<void>
  endSession(session: bigint, options: { reason: string; timeoutMs: number }): Promise<void>

  getRegister(key: string, options: { stale: boolean; timeoutMs: number }): Promise<EngineRegister | undefined>

  /** Events under `prefix` after `from` (default: now). Throws WatchError / EpochChangedError from the iterator. */
  watch(options: {
    prefix: string
    from?: Cursor
    signal: AbortSignal
  }): AsyncIterable<{ cursor: Cursor; event: Event }>

  /** Frees connections, timers and listeners. Sessions that are still open end by their TTL. */
  close(): Promise<void>
}

export interface OpenSessionOptions {
  readonly ttlMs: number
  /** For engines that renew by themselves: how long before the end of the TTL they stop. */
  readonly marginMs?: number
  readonly client: string
  readonly timeoutMs: number
}

export interface Capabilities {
  readonly modes: readonly ('exclusive' | 'shared' | 'permits')[]
  readonly severalLocks: boolean
  readonly lockDelay: boolean
  readonly persistent: boolean
  readonly portable: boolean
  readonly watch: boolean
  readonly registers: boolean
  readonly fencedRegisters: boolean
}

export type EngineStatus =
  | { readonly state: 'idle' }
  | { readonly state: 'connecting'; readonly attempt: number; readonly lastError?: Error }
  | { readonly state: 'connected'; readonly url: string; readonly epoch: number }
  | { readonly state: 'closed' }

export interface EngineRegister {
  readonly value: Uint8Array
  readonly version: bigint
  readonly lock: string | undefined
}

export interface EngineGrant {
  /** Full id of the hold. */
  readonly id: bigint
  readonly locks: readonly {
    readonly name: string
    readonly mode: Mode
    readonly token: Token
    readonly slot?: number
  }[]
  readonly secret?: string
}

export interface AcquireOptions {
  readonly locks: readonly LockRequest[]
  /** 0, milliseconds, or Infinity. Includes reconnects: the engine repeats the request with the same number. */
  readonly waitMs: number
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  readonly data: Uint8Array
  /** Ends the waiting: the engine cancels the request, and releases exactly its grant if that came first. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A session of the engine, which numbers requests and repeats them after a reconnect, so that a lost reply never
 * causes a second effect. `renew` is one attempt: it resolves when the service has acknowledged *this* attempt.
 */
export interface EngineSession {
  readonly id: bigint
  readonly ttlMs: number
  /** No room for another acquire or put because too many requests are open: the client uses another session meanwhile. */
  readonly congested: boolean
  /** The engine renews this session by itself; the client never calls `renew` for the lease's sake. */
  readonly lease?: EngineLease
  /** Ends of holds and of the session that the service reports. Set once by the client, right after opening. */
  listener: EngineSessionListener
  /** One attempt, at most `timeoutMs` long. SessionEndedError means that the service has ended the session. */
  renew(timeoutMs: number): Promise<void>
  /** Resolves with the grant; rejects with BusyError, AcquireTimeoutError, AbortedError, SessionEndedError, … */
  acquire(options: AcquireOptions): Promise<EngineGrant>
  /** Ends all waiting at once: open acquires are cancelled as by their signal, and reject with AbortedError. */
  cancelAcquires(why: string): void
  /** Moves a hold to this session. */
  adopt(options: { id: bigint; secret: string; timeoutMs: number }): Promise<EngineGrant>
  /** `released: false`: the hold was gone already. */
  release(hold: bigint, options: { timeoutMs: number; secret?: string }): Promise<{ released: boolean }>
  put(options: {
    key: string
    value: Uint8Array
    ifVersion?: bigint
    fence?: { hold: bigint; lock: string }
    timeoutMs: number
  }): Promise<bigint>
  delete(options: {
    key: string
    ifVersion?: bigint
    fence?: { hold: bigint; lock: string }
    timeoutMs: number
  }): Promise<void>
  /** A clean end: holds are released without lock delay. */
  close(timeoutMs: number): Promise<void>
  /** Stops using the session without a message to the service: no renewal, no release. It expires there. */
  abandon(): void
}

/**
 * A lease that another thread renews. Every member reads shared memory that the other thread writes.
 */
export interface EngineLease {
  /** Changes with every acknowledged renewal. */
  readonly renewals: bigint
  /** Milliseconds since the sending of the last acknowledged renewal (or of the opening). */
  sinceAcknowledgedMs(): number
  /** Why the session ended, if it has. */
  readonly ended: LostReason | undefined
  /** Stops renewing `limitMs` from now at the latest. */
  limit(limitMs: number): void
  stopRenewing(): void
}

export interface EngineSessionListener {
  holdEnded(hold: bigint, reason: EndReason, text: string): void
  sessionEnded(reason: SessionEndReason): void
}

/** The listener of a session before and after its use. */
export const NO_LISTENER: EngineSessionListener = { holdEnded: () => {}, sessionEnded: () => {} }
