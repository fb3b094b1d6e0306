import { writeLimits } from '../codec/commands.js'
import { Writer } from '../codec/writer.js'
import { LimitError } from '../errors.js'
import { assert } from '../assert.js'
import {
  HASH_ACKNOWLEDGED,
  HASH_ANSWER,
  HASH_CHANGE,
  HASH_DELAY,
  HASH_HOLD,
  HASH_LEASE,
  HASH_OWNER,
  HASH_PERMITS,
  HASH_REGISTER,
  HASH_SESSION,
  HASH_WAITER,
  type StateObserver,
} from './hash.js'
import type { Machine } from './machine.js'
import type { Delay, Hold, Lock, Register, Session, Waiter } from './elements.js'
import { isBefore, type Key, MergeSorter } from './merge-sorter.js'
import {
  SnapshotIds,
  snapshotFormat,
  writeAnswers,
  writeDelay,
  writeHold,
  writeRegister,
  writeSemaphore,
  writeSession,
  writeWaiter,
} from './snapshot-format.js'

const SNAPSHOT_BYTES_MAX = 2 ** 31 - 1
/** Size of the pieces of a snapshot. The last one is smaller, and a large element makes a larger one. */
const PIECE_BYTES = 128 * 1024
/** Visiting an element is as much work as writing this many bytes. */
const LOOK_WORK = 16

interface SectionOptions<E> {
  /** Number of elements when the snapshot was begun. */
  readonly count: number
  /** The current elements of the state, and others that are not `wanted`. */
  readonly elements: () => Iterator<E>
  readonly wanted?: (element: E) => boolean
  readonly keyOf: (element: E) => Key
  /** If keys are assigned in ascending order: the last one when the snapshot was begun. */
  readonly lastKey?: Key
  readonly write: (writer: Writer, element: E) => void
}

/**
 * Writes the elements of one kind as they were when the snapshot was begun.
 *
 * States: waiting → collecting (visits all elements and sorts them) → writing → done. The old form of an element that is changed
 * or removed before it is written is saved, and a new element is noted. An element that is collected and not saved is therefore
 * unchanged. If the visited table is replaced meanwhile, this does no harm: whatever is in only one of the two tables is saved or
 * noted.
 */
class Section<E> {
  readonly #order: MergeSorter<E>
  /** Saved old forms by key; undefined: the element is new. */
  readonly #saved = new Map<Key, Uint8Array | undefined>()
  #iterator: Iterator<E> | undefined
  #phase: 'waiting' | 'collecting' | 'writing' | 'done' = 'waiting'
  #written = 0
  #lastWritten: Key | undefined

  readonly #options: SectionOptions<E>

  constructor(options: SectionOptions<E>) {
    this.#options = options
    this.#order = new MergeSorter(options.keyOf)
  }

  get isDone(): boolean {
    return this.#phase === 'done'
  }

  /** Saves an element that is about to be changed or removed. */
  before(element: E): void {
    const key = this.#options.keyOf(element)
    if (this.#isNew(key) || this.#isWritten(key) || this.#saved.has(key)) return
    scratch.reset()
    this.#options.write(scratch, element)
    this.#saved.set(key, scratch.take())
    if (this.#phase !== 'writing') this.#order.add(element)
  }

  /** Notes an element that was added, or changed. */
  added(element: E): void {
    if (this.#phase === 'writing' || this.#phase === 'done') return
    const key = this.#options.keyOf(element)
    if (!this.#saved.has(key)) this.#saved.set(key, undefined)
  }

  /** Does about this much work. Returns how much it did. */
  advance(writer: Writer, work: number): number {
    if (this.#phase === 'waiting') {
      writer.varuint(this.#options.count)
      this.#iterator = this.#options.elements()
      this.#phase = 'collecting'
    }
    return this.#phase === 'collecting' ? this.#collect(work) : this.#write(writer, work)
  }

  #collect(work: number): number {
    const { wanted, keyOf } = this.#options
    const iterator = this.#iterator as Iterator<E>
    let done = 0
    for (; done < work; done += LOOK_WORK) {
      const { value, done: end } = iterator.next()
      if (end === true) {
        this.#order.close()
        this.#iterator = undefined
        this.#phase = 'writing'
        break
      }
      if (wanted !== undefined && !wanted(value)) continue
      const key = keyOf(value)
      if (!this.#isNew(key) && !this.#saved.has(key)) this.#order.add(value)
    }
    return done
  }

  #write(writer: Writer, work: number): number {
    const { keyOf, write, count } = this.#options
    const start = writer.length
    while (writer.length - start < work) {
      const element = this.#order.next()
      if (element === undefined) {
        assert(this.#written === count, `a snapshot of ${count} elements has ${this.#written}`)
        this.#phase = 'done'
        this.#saved.clear()
        break
      }
      const key = keyOf(element)
      // An element that was collected and changed later is in the order twice.
      if (key === this.#lastWritten) continue
      const former = this.#saved.get(key)
      if (former === undefined) write(writer, element)
      else writer.raw(former)
      this.#lastWritten = key
      this.#written++
    }
    return writer.length - start
  }

  #isNew(key: Key): boolean {
    const { lastKey } = this.#options
    return lastKey !== undefined && isBefore(lastKey, key)
  }

  #isWritten(key: Key): boolean {
    if (this.#phase === 'done') return true
    return this.#lastWritten !== undefined && !isBefore(this.#lastWritten, key)
  }
}

const scratch = new Writer()

/**
 * Writes a snapshot of the state as it was at the beginning, in steps, while more entries are applied. An element that is changed
 * before it is written costs a copy of its old form; see {@link Section}. The bytes do not depend on the steps: everything is in
 * one canonical order, so equal states have equal bytes.
 */
export class SnapshotWriter implements StateObserver {
  readonly #writer = new Writer(PIECE_BYTES, SNAPSHOT_BYTES_MAX)
  readonly #semaphores: Section<Lock>
  readonly #sessions: Section<Session>
  readonly #holds: Section<Hold>
  readonly #waiters: Section<Waiter>
  readonly #delays: Section<Delay>
  readonly #answers: Section<Session>
  readonly #registers: Section<Register>
  /** In the order of the snapshot. */
  readonly #sections: readonly { advance(writer: Writer, work: number): number; readonly isDone: boolean }[]
  #at = 0
  #bytes = 0
  #pieces: Uint8Array[] = []

  readonly #machine: Machine

  private constructor(machine: Machine) {
    this.#machine = machine
    assert(machine.dirty.length === 0, 'a snapshot between the steps of an entry')
    this.#writeHead()
    const { sessions, holds, waiters, delays, locks, registers, counter, arrivals } = machine
    const ids = new SnapshotIds(snapshotFormat(machine), counter)
    const bySession = {
      count: sessions.size,
      elements: () => sessions.values(),
      keyOf: (session: Session) => session.id,
      lastKey: counter,
    }
    this.#semaphores = new Section({
      count: machine.semaphores,
      elements: () => locks.values(),
      wanted: (lock) => lock.permits > 0,
      keyOf: (lock) => lock.name,
      write: writeSemaphore,
    })
    this.#sessions = new Section({ ...bySession, write: (w, session) => writeSession(w, session, ids) })
    this.#holds = new Section({
      count: holds.size,
      elements: () => holds.values(),
      keyOf: (hold) => hold.id,
      lastKey: counter,
      write: (w, hold) => writeHold(w, hold, ids),
    })
    this.#waiters = new Section({
      count: waiters.size,
      elements: () => waiters.values(),
      keyOf: (waiter) => waiter.arrival,
      lastKey: arrivals,
      write: writeWaiter,
    })
    this.#delays = new Section({
      count: delays.size,
      elements: () => delays.values(),
      keyOf: (delay) => delay.dueId,
      write: (w, delay) => writeDelay(w, delay, ids),
    })
    this.#answers = new Section({ ...bySession, write: (w, session) => writeAnswers(w, session, ids) })
    this.#registers = new Section({
      count: registers.size,
      elements: () => registers.values(),
      keyOf: (register) => register.key,
      write: writeRegister,
    })
    const semaphores = this.#semaphores
    const answers = this.#answers
    this.#sections = [semaphores, this.#sessions, this.#holds, this.#waiters, this.#delays, answers, this.#registers]
  }

  /** Begins a snapshot, which ignores whatever is applied from now on. There may be one at a time. */
  static open(machine: Machine): SnapshotWriter {
    assert(machine.hash.observer === undefined, 'a second snapshot of a state at once')
    const view = new SnapshotWriter(machine)
    machine.hash.observer = view
    return view
  }

  /** Returns a whole snapshot at once, also while another one is being written. */
  static whole(machine: Machine): Uint8Array {
    const view = new SnapshotWriter(machine)
    while (!view.step(PIECE_BYTES));
    const bytes = new Uint8Array(view.#bytes)
    let at = 0
    for (const piece of view.take()) {
      bytes.set(piece, at)
      at += piece.length
    }
    return bytes
  }

  /**
   * Does the next part of the work, about as much as writing this many bytes (a single element may take more). Returns true
   * after the last part; the writer is closed then.
   * @throws LimitError if the snapshot has more than 2^31 − 1 bytes
   */
  step(work: number): boolean {
    const sections = this.#sections
    const writer = this.#writer
    for (let left = work; left > 0 && this.#at < sections.length; ) {
      const section = sections[this.#at] as (typeof sections)[number]
      left -= section.advance(writer, Math.min(left, PIECE_BYTES))
      if (section.isDone) this.#at++
      if (writer.length >= PIECE_BYTES) this.#cut()
    }
    if (this.#at < sections.length) return false
    if (writer.length > 0) this.#cut()
    this.close()
    return true
  }

  /** Returns the pieces that have become ready since the last call. */
  take(): Uint8Array[] {
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  /** Ends the snapshot, finished or not. May be called repeatedly. */
  close(): void {
    if (this.#machine.hash.observer === this) this.#machine.hash.observer = undefined
  }

  beforeUpdate(kind: number, owner: unknown): void {
    switch (kind) {
      case HASH_SESSION:
        this.#sessions.before(owner as Session)
        return this.#answers.before(owner as Session)
      case HASH_LEASE:
      case HASH_ACKNOWLEDGED:
      case HASH_CHANGE:
        return this.#sessions.before(owner as Session)
      case HASH_ANSWER:
        return this.#answers.before(owner as Session)
      case HASH_HOLD:
      case HASH_OWNER:
        return this.#holds.before(owner as Hold)
      case HASH_WAITER:
        return this.#waiters.before(owner as Waiter)
      case HASH_DELAY:
        return this.#delays.before(owner as Delay)
      case HASH_REGISTER:
        return this.#registers.before(owner as Register)
      case HASH_PERMITS:
        return this.#semaphores.before(owner as Lock)
    }
  }

  afterUpdate(kind: number, owner: unknown): void {
    switch (kind) {
      // An addition to a session changes it. New sessions, holds and waiters are recognized by their numbers.
      case HASH_ACKNOWLEDGED:
      case HASH_CHANGE:
        return this.#sessions.before(owner as Session)
      case HASH_ANSWER:
        return this.#answers.before(owner as Session)
      case HASH_DELAY:
        return this.#delays.added(owner as Delay)
      case HASH_REGISTER:
        return this.#registers.added(owner as Register)
      case HASH_PERMITS:
        return this.#semaphores.added(owner as Lock)
    }
  }

  #writeHead(): void {
    const writer = this.#writer
    const machine = this.#machine
    writer.u8(snapshotFormat(machine))
    writer.varuint(machine.epoch)
    writer.varuint(machine.index)
    writer.varuint(machine.now)
    writer.varuint(machine.counter)
    writer.varuint(machine.arrivals)
    writer.varuint(machine.level)
    writeLimits(writer, machine.limits)
  }

  #cut(): void {
    const piece = this.#writer.take()
    this.#writer.reset()
    this.#bytes += piece.length
    if (this.#bytes > SNAPSHOT_BYTES_MAX) {
      throw new LimitError(`a snapshot of more than ${SNAPSHOT_BYTES_MAX} bytes`)
    }
    this.#pieces.push(piece)
  }
}
