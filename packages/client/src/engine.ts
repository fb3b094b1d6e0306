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
 * What keeps the lock state, as the client sees it: a Leasehold server or cluster, an embedded replica, etcd, PostgreSQL.
 * An engine speaks full 63-bit ids. It never decides by itself that a hold is lost because time has passed: deadlines
 * are the client's. All failures are `LeaseholdError`s.
 */
export interface Engine {
  /** For messages: `http://127.0.0.1:4100`, `memory:test`, … */
  readonly name: string
  readonly capabilities: Capabilities
  /** Connects now, within `timeoutMs`. Idempotent. Every other call connects by itself when needed. */
  connect(timeoutMs: number): Promise<void>
  readonly status: EngineStatus
  onStatus(listener: (status: EngineStatus) => void): () => void

  /** Opens a session. The caller takes its send time before this call, so a slow connect only shortens the lease. */
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
  /** Ends the waiting: the engine cancels the request, and releases exactly this grant if it won the race. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A session at the engine. Requests are numbered and repeated by the engine after a reconnect, so that a lost reply never
 * makes a second effect. `renew` is one attempt: it resolves when the service has acknowledged *this* attempt.
 */
export interface EngineSession {
  readonly id: bigint
  readonly ttlMs: number
  /** Too many requests are open for another acquire or put: the client takes another session until this is over. */
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
  /** Takes a hold over. */
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
  /** Forgets the session without a word to the service: no renewal, no release. It ends there by its TTL. */
  abandon(): void
}

/**
 * A lease that is renewed beside this thread. Every member answers at once, from memory that the other thread writes.
 */
export interface EngineLease {
  /** Another one for every acknowledged renewal. */
  readonly renewals: bigint
  /** Milliseconds since the sending of the last acknowledged renewal (or of the opening). */
  sinceAcknowledgedMs(): number
  /** Why the session is over, if it is. */
  readonly ended: LostReason | undefined
  /** No renewal later than this from now. */
  limit(limitMs: number): void
  stopRenewing(): void
}

export interface EngineSessionListener {
  holdEnded(hold: bigint, reason: EndReason, text: string): void
  sessionEnded(reason: SessionEndReason): void
}

/** A listener for sessions that have none, or none any more. */
export const NO_LISTENER: EngineSessionListener = { holdEnded: () => {}, sessionEnded: () => {} }
