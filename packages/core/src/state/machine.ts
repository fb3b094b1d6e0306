import { NameTable } from './name-table.js'
import type { Index, Serial } from '../brand.js'
import type { Change, Event, Limits, Push } from '../operations.js'
import { CompactingMap } from '../compacting-map.js'
import { LEVEL_MAX } from '../limits.js'
import { COUNTER_MAX } from '../tokens.js'
import { assert } from '../assert.js'
import { DeadlineHeap } from './deadlines.js'
import {
  HASH_ACKNOWLEDGED,
  HASH_ANSWER,
  HASH_CHANGE,
  HASH_DELAY,
  HASH_GLOBAL,
  HASH_HOLD,
  HASH_LEASE,
  HASH_OWNER,
  HASH_PERMITS,
  HASH_REGISTER,
  HASH_SESSION,
  HASH_WAITER,
  SetHash,
} from './hash.js'
import { type Answer, type Delay, type Hold, Lock, type Register, type Session, type Waiter } from './elements.js'

/**
 * The replicated state, and the outputs of the entry that is being applied. The rules are in the files beside this one. They
 * change an element only between `hash…().beginUpdate()` and `hash…().endUpdate()`, and add an answer, a change or an
 * acknowledged number to its session only after `endUpdate()`: so a {@link StateObserver} sees every element before it changes.
 */
export class Machine {
  /** The last applied index. */
  index: Index = 0 as Index
  /** Cluster time. */
  now = 0
  /** The last value drawn from the replicated counter. */
  counter = 0
  /** The last number given out in the order of arrival. */
  arrivals = 0
  level = LEVEL_MAX

  readonly sessions = new CompactingMap<number, Session>()
  readonly nonces = new CompactingMap<string, Session>()
  /** In the order of their ids. */
  readonly holds = new CompactingMap<number, Hold>()
  /** In the order of arrival. */
  readonly waiters = new CompactingMap<number, Waiter>()
  readonly delays = new CompactingMap<number, Delay>()
  readonly locks = new NameTable<Lock>()
  /** How many of the locks are semaphores. */
  semaphores = 0
  readonly registers = new Map<string, Register>()
  readonly deadlines = new DeadlineHeap()
  readonly hash = new SetHash()

  /** Locks whose front or holds have changed since they were last served, possibly with repetitions. */
  dirty: Lock[] = []

  pushes: Push[] = []
  events: Event[] = []

  constructor(
    readonly epoch: number,
    public limits: Limits,
  ) {}

  /** Whether the counter has values left. A full counter is refused as `limit`; it never wraps. */
  get canDraw(): boolean {
    return this.counter < COUNTER_MAX
  }

  /** Returns the next counter value. */
  draw(): Serial {
    assert(this.canDraw, `the counter of epoch ${this.epoch} is full`)
    return ++this.counter as Serial
  }

  /** Raises the counter to at least `floor`. */
  raiseCounter(floor: Serial): void {
    if (floor > this.counter) this.counter = floor
  }

  /** Returns the lock, and creates it if it does not exist. */
  ensureLock(name: string, permits: number): Lock {
    const known = this.locks.get(name)
    if (known !== undefined) return known
    const lock = new Lock(name, permits)
    this.locks.set(name, lock)
    if (permits > 0) {
      this.semaphores++
      this.hashPermits(lock).endUpdate()
    }
    return lock
  }

  /** Returns a lock that must exist, because it is held, waited for or delayed. */
  requireLock(name: string): Lock {
    const lock = this.locks.get(name)
    assert(lock !== undefined, `${JSON.stringify(name)} is in use, and not known`)
    return lock
  }

  removeLock(lock: Lock): void {
    if (lock.permits > 0) {
      this.semaphores--
      this.hashPermits(lock).beginUpdate()
    }
    this.locks.delete(lock.name)
  }

  markDirty(lock: Lock): void {
    this.dirty.push(lock)
  }

  /** Adds a change to the session, which keeps it until the client has seen it, and pushes it. Returns its number. */
  addChange(session: Session, make: (number: number) => Change): number {
    this.hashLease(session).beginUpdate()
    const change = make(++session.changeNumber)
    this.hashLease(session).endUpdate()
    this.hashChange(session, change).endUpdate()
    session.changes.set(change.number, change)
    this.pushes.push({ session: session.id, change })
    return change.number
  }

  dropChange(session: Session, number: number): void {
    const change = session.changes.get(number)
    if (change === undefined) return
    this.hashChange(session, change).beginUpdate()
    session.changes.delete(number)
  }

  /** The constant part of a session. */
  hashSession(session: Session): SetHash {
    return this.hash
      .start(HASH_SESSION, session)
      .put(session.id)
      .put(session.ttlMs)
      .put(session.local ? 1 : 0)
      .putText(session.secret)
      .putText(session.nonce)
      .putText(session.client)
  }

  /** The variable part of a session. */
  hashLease(session: Session): SetHash {
    return this.hash
      .start(HASH_LEASE, session)
      .put(session.id)
      .put(session.expiresAt)
      .put(session.lowest)
      .put(session.changeNumber)
  }

  hashAcknowledged(session: Session, request: number): SetHash {
    return this.hash.start(HASH_ACKNOWLEDGED, session).put(session.id).put(request)
  }

  hashAnswer(session: Session, answer: Answer): SetHash {
    const hash = this.hash.start(HASH_ANSWER, session).put(session.id).put(answer.request)
    if (answer.waiter !== undefined) return hash.put(1).put(answer.waiter.arrival)
    if (answer.hold !== undefined) return hash.put(2).put(answer.hold.id)
    const result = answer.result
    assert(result !== undefined, `the answer ${answer.request} of session ${session.id} is empty`)
    hash.put(3).putText(result.kind)
    if (result.kind === 'refused') return hash.putText(result.code).putText(result.message)
    if (result.kind === 'ended') return hash.put(result.hold).putText(result.reason)
    if (result.kind === 'put') return hash.putWide(result.version)
    if (result.kind === 'cancelled') return hash.putText(result.was)
    return hash
  }

  hashChange(session: Session, change: Change): SetHash {
    const hash = this.hash.start(HASH_CHANGE, session).put(session.id).put(change.number)
    if (change.kind === 'granted') return hash.put(1).put(change.request).put(change.grant.hold)
    if (change.kind === 'refused') return hash.put(2).put(change.request).putText(change.refused.code)
    return hash.put(3).put(change.hold).putText(change.reason)
  }

  /** The constant part of a hold. */
  hashHold(hold: Hold): SetHash {
    const { terms } = hold
    const hash = this.hash
      .start(HASH_HOLD, hold)
      .put(hold.id)
      .put(hold.grantedAt)
      .put(terms.lockDelayMs)
      .put((terms.persistent ? 1 : 0) + (terms.portable ? 2 : 0))
    if (terms.secret !== undefined) hash.putText(terms.secret)
    if (terms.data.length > 0) hash.putBytes(terms.data)
    for (const held of hold.held) {
      hash.putText(held.name).put(held.token)
      hash.put(held.mode === 'exclusive' ? -1 : held.mode === 'shared' ? -2 : (held.slot as number))
    }
    return hash
  }

  /** The variable part of a hold: its owner, and what the client knows of it. */
  hashOwner(hold: Hold): SetHash {
    return this.hash
      .start(HASH_OWNER, hold)
      .put(hold.id)
      .put(hold.session === undefined ? 0 : hold.session.id)
      .put(hold.terms.confirmed ? 1 : 0)
      .put(hold.answer === undefined ? 0 : hold.answer.request)
      .put(hold.grantChange)
  }

  hashWaiter(waiter: Waiter): SetHash {
    const acquire = waiter.acquire
    const hash = this.hash
      .start(HASH_WAITER, waiter)
      .put(waiter.arrival)
      .put(waiter.session.id)
      .put(acquire.request)
      .put(waiter.dueAt)
      .put(waiter.queuedAt)
      .put(acquire.lockDelayMs)
      .put((acquire.persistent ? 1 : 0) + (acquire.portable ? 2 : 0))
      .putBytes(acquire.data)
    for (const { name, mode } of acquire.locks) {
      hash.putText(name).put(mode === 'exclusive' ? -1 : mode === 'shared' ? -2 : mode.permits)
    }
    return hash
  }

  hashDelay(delay: Delay): SetHash {
    const hash = this.hash.start(HASH_DELAY, delay).put(delay.dueId).put(delay.dueAt)
    for (const held of delay.held) {
      hash.putText(held.name).put(held.mode === 'exclusive' ? -1 : held.mode === 'shared' ? -2 : (held.slot as number))
    }
    return hash
  }

  hashRegister(register: Register): SetHash {
    return this.hash
      .start(HASH_REGISTER, register)
      .putText(register.key)
      .putBytes(register.value)
      .putWide(register.version)
      .putText(register.lock ?? '')
  }

  hashPermits(lock: Lock): SetHash {
    return this.hash.start(HASH_PERMITS, lock).putText(lock.name).put(lock.permits)
  }

  /** 16 hex digits over everything in the replicated state. */
  digest(): string {
    const hash = this.hash
      .start(HASH_GLOBAL)
      .put(this.epoch)
      .put(this.index)
      .put(this.now)
      .put(this.counter)
      .put(this.arrivals)
      .put(this.level)
    const { limits } = this
    if (this.#sorted?.of !== limits)
      this.#sorted = { of: limits, names: (Object.keys(limits) as (keyof Limits)[]).sort() }
    for (const name of this.#sorted.names) hash.putText(name).put(limits[name])
    return hash.digest()
  }

  /** The sorted names of the current limits, which are replaced and never altered. */
  #sorted: { readonly of: Limits; readonly names: readonly (keyof Limits)[] } | undefined
}
