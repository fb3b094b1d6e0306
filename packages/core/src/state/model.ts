import type { HoldId, Millis, SessionId } from '../brand.js'
import type { Acquire, Change, HeldLock, Hex128, LockRequest, Refused, Result } from '../operations.js'
import type { Due } from './due.js'
import type { Queue, QueueNode } from './queue.js'

/**
 * The remembered answer to a numbered request. An acquire's answer is its present state: it waits (`waiter`), it was
 * granted (`hold`), or it has come to an end (`result`). Exactly one of the three is set.
 */
export interface Answer {
  readonly request: number
  waiter: Waiter | undefined
  hold: Hold | undefined
  result: Result | undefined
}

/**
 * A session is alive until it is closed or `expiresAt` is reached; only `renew` moves `expiresAt`.
 * `dueAt` may lag behind `expiresAt`: it is put right when the heap brings it up.
 */
export interface Session extends Due {
  readonly id: SessionId
  readonly nonce: Hex128
  readonly secret: Hex128
  readonly ttlMs: Millis
  readonly client: string
  readonly local: boolean
  expiresAt: number
  /** Every number below is acknowledged. */
  lowest: number
  /** Numbers ≥ `lowest` that are acknowledged. */
  readonly acknowledged: Set<number>
  readonly answers: Map<number, Answer>
  /** In the order of their ids. */
  readonly holds: Set<Hold>
  /** In the order of their arrival. */
  readonly waiters: Set<Waiter>
  /** Number of the last change. */
  changeNumber: number
  /** Not yet seen by the client, in order of number. */
  readonly changes: Map<number, Change>
}

/** One grant. `held[i]` is what it has of the lock `places[i]`. */
export interface Hold {
  readonly id: HoldId
  session: Session | undefined
  readonly held: readonly HeldLock[]
  readonly places: readonly Lock[]
  /** The client's text, for people, also after the session has gone. */
  readonly client: string
  readonly data: Uint8Array
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  /** A persistent hold whose grant has been acknowledged: it outlives its session. */
  confirmed: boolean
  readonly secret: Hex128 | undefined
  readonly grantedAt: number
  /** The answer of the acquire that got it, until the client has acknowledged it. */
  answer: Answer | undefined
  /** Number of the `granted` change in its session that is still kept; 0: none. */
  grantChange: number
}

/** A queued acquire: in the queue of each of its locks. */
export interface Waiter extends Due {
  /** Place in the order of arrival over the whole service; also its due id. */
  readonly arrival: number
  readonly session: Session
  readonly acquire: Acquire
  readonly queuedAt: number
  readonly places: readonly Lock[]
  nodes: QueueNode[]
  readonly answer: Answer
}

/** What an ended hold with a lock delay still blocks, until `dueAt`. */
export interface Delay extends Due {
  readonly held: readonly HeldLock[]
  readonly places: readonly Lock[]
}

/** A lock that is not idle: it has a hold, a waiter or a delay. Idle locks are not kept. */
export interface Lock {
  readonly name: string
  /** Size of the semaphore; 0: a lock with exclusive and shared holds. */
  permits: number
  exclusive: Hold | undefined
  shared: Set<Hold> | undefined
  /** Token of the present generation of shared holds; meaningful while there is one. */
  generation: number
  /** Holder by slot, for a semaphore. */
  slots: (Hold | undefined)[] | undefined
  /** Number of taken slots. */
  taken: number
  delays: Set<Delay> | undefined
  queue: Queue | undefined
  /** In the list of locks to be served. */
  dirty: boolean
}

export interface Register {
  readonly key: string
  value: Uint8Array
  version: bigint
  /** The lock that fences it. */
  lock: string | undefined
}

export function newAnswer(request: number): Answer {
  return { request, waiter: undefined, hold: undefined, result: undefined }
}

export function isIdle(lock: Lock): boolean {
  return (
    lock.exclusive === undefined &&
    (lock.shared === undefined || lock.shared.size === 0) &&
    lock.taken === 0 &&
    (lock.delays === undefined || lock.delays.size === 0) &&
    (lock.queue === undefined || lock.queue.length === 0)
  )
}

export function permitsOf(request: LockRequest): number {
  return typeof request.mode === 'object' ? request.mode.permits : 0
}

export function refused(code: Refused['code'], message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}
