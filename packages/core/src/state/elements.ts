import type { HoldId, Millis, SessionId } from '../brand.js'
import type { CompactingMap, CompactingSet } from '../compacting-map.js'
import type { Acquire, Change, HeldLock, Hex128, LockRequest, Refused, Result } from '../operations.js'
import { BusySlots } from './busy-slots.js'
import type { Deadline } from './deadlines.js'
import type { Queue, QueueNode } from './queue.js'

/**
 * The kept answer to a numbered request. That of an acquire is its current state: it waits (`waiter`), it was granted (`hold`),
 * or it is final (`result`). Exactly one of the three is set.
 */
export interface Answer {
  readonly request: number
  waiter: Waiter | undefined
  hold: Hold | undefined
  result: Result | undefined
}

/**
 * A session. It lives until it is closed or cluster time reaches `expiresAt`, which only `renew` moves. `dueAt` may lag behind
 * `expiresAt`, and is corrected when the session reaches the top of the heap.
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
  /** By ascending id. */
  readonly holds: CompactingSet<Hold>
  /** By arrival. */
  readonly waiters: CompactingSet<Waiter>
  /** Number of the last change. */
  changeNumber: number
  /** Changes that the client has not seen, by number. */
  readonly changes: CompactingMap<number, Change>
}

/** The options of a hold, and whether its grant is acknowledged. Most holds have none and share {@link PLAIN}. */
export interface Terms {
  readonly data: Uint8Array
  readonly lockDelayMs: number
  readonly persistent: boolean
  readonly portable: boolean
  /** Of a persistent or portable hold. */
  readonly secret: Hex128 | undefined
  /** Whether the hold is persistent and its grant was acknowledged, so that it outlives its session. */
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

/** A hold. There may be millions, so every field costs memory. */
export interface Hold {
  readonly id: HoldId
  session: Session | undefined
  /** By name, since locks exist as long as they are held. */
  readonly held: readonly HeldLock[]
  /** The session's client text, also after the session has ended. */
  readonly client: string
  terms: Terms
  readonly grantedAt: number
  /** The answer of its acquire or adopt, until the client has acknowledged it. */
  answer: Answer | undefined
  /** Number of its kept `granted` change in the session; 0: none. */
  grantChange: number
}

/** A queued acquire, which is in the queue of each of its locks. */
export interface Waiter extends Deadline {
  /** Its number in the order of arrival at the service; also its `dueId`. */
  readonly arrival: number
  readonly session: Session
  readonly acquire: Acquire
  readonly queuedAt: number
  readonly places: readonly Lock[]
  nodes: QueueNode<Waiter>[]
  readonly answer: Answer
}

/** The lock delay of an ended hold: its locks stay blocked until `dueAt`. */
export interface Delay extends Deadline {
  readonly held: readonly HeldLock[]
}

/** Overlapping shared holds and their common token. */
export interface Readers {
  readonly holds: Set<Hold>
  readonly generation: number
}

export interface Semaphore {
  size: number
  /** Hold by slot. */
  readonly slots: (Hold | undefined)[]
  /** Number of held slots. */
  taken: number
  /** Slots that are held or blocked by a lock delay. */
  readonly busy: BusySlots
}

/** A lock with a hold, a waiter or a delay. Idle locks are not kept. */
export class Lock {
  exclusive: Hold | undefined = undefined
  /** At least one shared hold; undefined: none. */
  readers: Readers | undefined = undefined
  /** Undefined: a lock with exclusive and shared holds. */
  readonly semaphore: Semaphore | undefined
  delays: Set<Delay> | undefined = undefined
  queue: Queue<Waiter> | undefined = undefined

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

/**
 * Creates a refusal. Kept answers are part of the replicated state and of its hash, so a changed message needs a new feature
 * level: members of the version before would hash another text.
 */
export function refused(code: Refused['code'], message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}
