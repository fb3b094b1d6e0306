import type { HoldId, Index, Millis, Serial, SessionId } from './brand.js'
import type { ErrorCode } from './error-table.js'

/** The mode of a lock: exclusive, shared with other readers, or one of `permits` permits. */
export type Mode = 'exclusive' | 'shared' | { readonly permits: number }

export interface LockRequest {
  readonly name: string
  readonly mode: Mode
}

/**
 * The answers that a session has received: all below `lowest`, and those of `also` (numbers ≥ `lowest`). The service
 * discards them.
 */
export interface Ack {
  readonly lowest: number
  readonly also: readonly number[]
}

/** A request of a session; `request` is its number, counted from 1 by the client. */
export interface Numbered {
  readonly session: SessionId
  readonly request: number
  readonly ack: Ack
}

/** 16 bytes as 32 lower-case hex digits. */
export type Hex128 = string

/** The `waitMs` of a wait without end. */
export const WAIT_FOREVER = -1

export interface OpenSession {
  readonly kind: 'openSession'
  /** Chosen by the client: a repeat with the same nonce returns the same session. */
  readonly nonce: Hex128
  /** Minted by the leader; needed to use the session from another connection. */
  readonly secret: Hex128
  readonly ttlMs: Millis
  /** The client's name for people, at most 256 bytes. */
  readonly client: string
  /** Whether the session is in the service's own process: it ends as soon as that process is known to be dead. */
  readonly local: boolean
}

/** Renews a session. It is not deduplicated: every attempt counts. */
export interface Renew {
  readonly kind: 'renew'
  readonly session: SessionId
  /** The highest change number that the client has seen. */
  readonly seen?: number
  readonly ack?: Ack
}

export interface CloseSession {
  readonly kind: 'closeSession'
  readonly session: SessionId
  /** `owner`: a clean end, no lock delay. `operator` and `death`: lock delays count. */
  readonly by: 'owner' | 'operator' | 'death'
  readonly reason: string
}

export interface Acquire extends Numbered {
  readonly kind: 'acquire'
  readonly locks: readonly LockRequest[]
  /** Milliseconds of cluster time; 0: answer at once; {@link WAIT_FOREVER}: no end. */
  readonly waitMs: number
  readonly lockDelayMs: Millis
  readonly persistent: boolean
  readonly portable: boolean
  /** Minted by the leader for persistent and portable holds. */
  readonly secret?: Hex128
  /** The owner's data, which queries show. */
  readonly data: Uint8Array
}

/** Undoes the acquire `target`: it leaves the queue, its hold is released, or it never takes effect if it arrives later. */
export interface Cancel extends Numbered {
  readonly kind: 'cancel'
  readonly target: number
}

/** Ends a hold. It may have no session and no number, because a repeat has no second effect. */
export interface Release extends Partial<Numbered> {
  readonly kind: 'release'
  readonly hold: HoldId
  /** The hold's secret, needed for a persistent hold outside its session. */
  readonly secret?: Hex128
}

/** Moves a hold to `session`, under a new id and (unless shared) a new, greater token. */
export interface Adopt extends Numbered {
  readonly kind: 'adopt'
  readonly hold: HoldId
  readonly secret: Hex128
  /** Minted by the leader; replaces the old secret. */
  readonly newSecret: Hex128
}

/** Ends a hold without its owner's consent. */
export interface Steal {
  readonly kind: 'steal'
  readonly hold: HoldId
  readonly actor: string
  readonly reason: string
}

/** The right to write a fenced register: an exclusive hold of `lock`. */
export interface Fence {
  readonly hold: HoldId
  readonly lock: string
}

export interface Put extends Partial<Numbered> {
  readonly kind: 'put'
  readonly key: string
  readonly value: Uint8Array
  /** The expected 63-bit version; 0n: the register must not exist. */
  readonly ifVersion?: bigint
  readonly fence?: Fence
}

export interface Delete extends Partial<Numbered> {
  readonly kind: 'delete'
  readonly key: string
  readonly ifVersion?: bigint
  readonly fence?: Fence
}

export interface Limits {
  readonly sessions: number
  readonly holds: number
  readonly holdsPerSession: number
  readonly waitersPerLock: number
  readonly locksPerAcquire: number
  readonly dataBytes: number
  readonly registers: number
  readonly registerBytes: number
  readonly ttlMinMs: number
  readonly ttlMaxMs: number
  readonly lockDelayMaxMs: number
}

/**
 * Changes settings. The leader raises `level` once all members support it. `permits` resizes a semaphore in use, and `floor`
 * raises the counter to at least this value (see {@link floorAt}).
 */
export interface Configure {
  readonly kind: 'configure'
  readonly limits?: Partial<Limits>
  readonly level?: number
  readonly permits?: { readonly name: string; readonly size: number }
  readonly floor?: Serial
}

export type Command =
  | OpenSession
  | Renew
  | CloseSession
  | Acquire
  | Cancel
  | Release
  | Adopt
  | Steal
  | Put
  | Delete
  | Configure

/** A log entry: the leader's timestamp and a batch of commands. Without commands it only advances cluster time. */
export interface Entry {
  readonly at: Millis
  readonly commands: readonly Command[]
}

/** One lock of a hold. `token` and `slot` are of this lock. */
export interface HeldLock {
  readonly name: string
  readonly mode: Mode
  readonly token: Serial
  /** 0 … permits − 1 for a permit; undefined otherwise. */
  readonly slot?: number
}

/** A hold as its owner sees it. */
export interface Grant {
  readonly hold: HoldId
  readonly locks: readonly HeldLock[]
  readonly secret?: Hex128
}

/** Why a hold or session ended. */
export type EndReason = 'released' | 'expired' | 'closed' | 'operator' | 'death' | 'stolen' | 'moved'

/** Why a command had no effect. */
export interface Refused {
  readonly kind: 'refused'
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string
  /** For `version-conflict`: the register's version, 0n when it does not exist. */
  readonly version?: bigint
}

export type Result =
  | { readonly kind: 'opened'; readonly session: SessionId; readonly secret: Hex128; readonly ttlMs: Millis }
  | { readonly kind: 'renewed'; readonly changes: readonly Change[] }
  | { readonly kind: 'closed' }
  | { readonly kind: 'granted'; readonly grant: Grant }
  | { readonly kind: 'queued'; readonly position: number }
  /** The answer to a repeated acquire whose hold has ended. */
  | { readonly kind: 'ended'; readonly hold: HoldId; readonly reason: EndReason }
  | { readonly kind: 'cancelled'; readonly was: 'queued' | 'granted' | 'ended' | 'unknown' }
  | { readonly kind: 'released' }
  | { readonly kind: 'stolen' }
  | { readonly kind: 'put'; readonly version: bigint }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'configured' }
  | Refused

/**
 * A notification for a session, numbered per session. It is pushed to the session's connection, and repeated in the answer to
 * every renewal until the client has seen it.
 */
export type Change =
  | { readonly kind: 'granted'; readonly number: number; readonly request: number; readonly grant: Grant }
  | { readonly kind: 'refused'; readonly number: number; readonly request: number; readonly refused: Refused }
  | {
      readonly kind: 'ended'
      readonly number: number
      readonly hold: HoldId
      readonly reason: EndReason
      readonly text: string
    }

/** A push for `session`: a `change`, or `ended` if the session itself has ended. */
export interface Push {
  readonly session: SessionId
  readonly change?: Change
  readonly ended?: EndReason
}

/** An event of a watch. `names` are locks, `key` is a register. */
export type Event =
  | { readonly kind: 'held'; readonly grant: Grant; readonly session: SessionId; readonly client: string }
  | {
      readonly kind: 'freed'
      readonly hold: HoldId
      readonly locks: readonly HeldLock[]
      readonly reason: EndReason
      readonly actor: string
      readonly text: string
    }
  | {
      readonly kind: 'queued'
      readonly session: SessionId
      readonly request: number
      readonly names: readonly string[]
    }
  | {
      readonly kind: 'unqueued'
      readonly session: SessionId
      readonly request: number
      readonly names: readonly string[]
      readonly reason: 'timeout' | 'cancelled' | 'session-ended'
    }
  | { readonly kind: 'sessionOpened'; readonly session: SessionId; readonly client: string }
  | { readonly kind: 'sessionEnded'; readonly session: SessionId; readonly reason: EndReason }
  | { readonly kind: 'put'; readonly key: string; readonly version: bigint }
  | { readonly kind: 'deleted'; readonly key: string; readonly version: bigint }

/** A position in the stream of events: after the `ordinal`-th event of the entry at `index`. */
export interface Cursor {
  readonly epoch: number
  readonly index: Index
  readonly ordinal: number
}

/** The effects of one applied entry. `results[i]` answers `entry.commands[i]`. */
export interface Applied {
  readonly results: readonly Result[]
  readonly pushes: readonly Push[]
  readonly events: readonly Event[]
}

// --- Queries and their results ---

export interface HoldView {
  readonly id: HoldId
  readonly locks: readonly HeldLock[]
  readonly session: SessionId | undefined
  readonly client: string
  readonly data: Uint8Array
  readonly persistent: boolean
  readonly ageMs: Millis
  /** Until its session expires without a renewal; undefined for a persistent hold that has left its session. */
  readonly remainingMs: Millis | undefined
}

export interface WaiterView {
  readonly session: SessionId
  readonly request: number
  readonly client: string
  readonly locks: readonly LockRequest[]
  readonly waitingMs: Millis
  /** Until the wait times out; undefined: no end. */
  readonly remainingMs: Millis | undefined
}

export interface SessionView {
  readonly id: SessionId
  readonly client: string
  readonly ttlMs: Millis
  readonly remainingMs: Millis
  readonly holds: number
  readonly waiters: number
}

export interface DelayView {
  readonly name: string
  readonly mode: Mode
  readonly slot?: number
  readonly remainingMs: Millis
}

export interface Query {
  readonly prefix?: string
  readonly name?: string
  /** At most this many held and as many pending rows; default 100, at most 1 000. */
  readonly limit?: number
  /** `next` of the page before. */
  readonly cursor?: string
}

export interface QueryResult {
  readonly held: readonly HoldView[]
  readonly pending: readonly WaiterView[]
  readonly delays: readonly DelayView[]
  readonly sessions: readonly SessionView[]
  /** Cursor of the next page; undefined on the last one. */
  readonly next: string | undefined
  /** Watch from here to see everything after this answer. */
  readonly at: Cursor
}

/** A register without its value. */
export interface RegisterMetadata {
  readonly key: string
  readonly version: bigint
  /** The lock that fences it. */
  readonly lock: string | undefined
  readonly bytes: number
}

export interface RegisterView {
  readonly key: string
  readonly value: Uint8Array
  readonly version: bigint
  /** The lock that fences the register, if any. */
  readonly lock: string | undefined
}
