import type { HoldId, Millis, SessionId } from '../brand.js'
import type { CompactingMap, CompactingSet } from '../compacting-map.js'
import type { Acquire, Change, HeldLock, Hex128, LockRequest, Refused, Result } from '../operations.js'
import { BusySlots } from './busy-slots.js'
import type { Deadline } from './deadlines.js'
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
export interface Session extends Deadline {
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
  readonly acknowledged: CompactingSet<number>
  readonly answers: CompactingMap<number, Answer>
  /** In the order of their ids. */
  readonly holds: CompactingSet<Hold>
  /** In the order of their arrival. */
  readonly waiters: CompactingSet<Waiter>
  /** Number of the last change. */
  changeNumber: number
  /** Not yet seen by the client, in order of number. */
  readonly changes: CompactingMap<number, Change>
}

/** What an acquire asked for besides its locks, and whether the client knows that it got it. Most ask for nothing, and share {@link PLAIN}. */
export interface Terms {
  readonly data: Uint8Array
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  /** Of a persistent or portable hold. */
  readonly secret: Hex128 | undefined
  /** A persistent hold whose grant has been acknowledged: it outlives its session. */
  readonly confirmed: boolean
}

const NO_DATA = new Uint8Array(0)
const PLAIN: Terms = {
  data: NO_DATA,
  lockDelayMs: 0,
  persistent: false,
  portable: false,
  secret: undefined,
  confirmed: false,
}

/** One grant. There may be millions of them: every field counts. */
export interface Hold {
  readonly id: HoldId
  session: Session | undefined
  /** The names lead to the locks, which are kept as long as they are held. */
  readonly held: readonly HeldLock[]
  /** The client's text, for people, also after the session has gone. */
  readonly client: string
  terms: Terms
  readonly grantedAt: number
  /** The answer of the acquire that got it, until the client has acknowledged it. */
  answer: Answer | undefined
  /** Number of the `granted` change in its session that is still kept; 0: none. */
  grantChange: number
}

/** A queued acquire: in the queue of each of its locks. */
export interface Waiter extends Deadline {
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
export interface Delay extends Deadline {
  readonly held: readonly HeldLock[]
}

/** Shared holds that overlap, and the token that they share. */
export interface Readers {
  readonly holds: Set<Hold>
  readonly generation: number
}

export interface Semaphore {
  size: number
  /** Holder by slot. */
  readonly slots: (Hold | undefined)[]
  /** Number of taken slots. */
  taken: number
  /** Taken ones, and those that a lock delay keeps back. */
  readonly busy: BusySlots
}

/** A lock that is not idle: it has a hold, a waiter or a delay. Idle locks are not kept. */
export class Lock {
  exclusive: Hold | undefined = undefined
  /** At least one shared hold; undefined: none. */
  readers: Readers | undefined = undefined
  /** Undefined: a lock with exclusive and shared holds. */
  readonly semaphore: Semaphore | undefined
  delays: Set<Delay> | undefined = undefined
  queue: Queue | undefined = undefined

  constructor(
    readonly name: string,
    permits: number,
  ) {
    this.semaphore = permits === 0 ? undefined : { size: permits, slots: [], taken: 0, busy: new BusySlots() }
  }

  /** Size of the semaphore; 0: none. */
  get permits(): number {
    return this.semaphore === undefined ? 0 : this.semaphore.size
  }
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
    lock.readers === undefined &&
    (lock.semaphore === undefined || lock.semaphore.taken === 0) &&
    (lock.delays === undefined || lock.delays.size === 0) &&
    (lock.queue === undefined || lock.queue.length === 0)
  )
}

export function termsOf(
  asked: Omit<Terms, 'secret' | 'confirmed'> & { readonly secret?: Hex128 | undefined },
  confirmed: boolean,
): Terms {
  const { data, lockDelayMs, persistent, portable } = asked
  if (data.length === 0 && lockDelayMs === 0 && !persistent && !portable) return PLAIN
  const secret = persistent || portable ? asked.secret : undefined
  return {
    data: data.length === 0 ? NO_DATA : data,
    lockDelayMs,
    persistent,
    portable,
    secret,
    confirmed: persistent && confirmed,
  }
}

export function permitsOf(request: LockRequest): number {
  return typeof request.mode === 'object' ? request.mode.permits : 0
}

export function refused(code: Refused['code'], message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}
