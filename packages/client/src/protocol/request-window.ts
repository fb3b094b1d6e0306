import { type Ack, CompactingSet } from '@leasehold/core'

const NOTHING: readonly number[] = []
const SLOTS_MIN = 16
const ANSWERED = Symbol('answered')

/**
 * The request numbers of a session with their requests, and what has to be acknowledged to the service.
 *
 * A number is *open* from `take` until `answered`. The service keeps its answer until that is acknowledged: by
 * the lowest open number, and one by one for those answered above it. Numbers are taken in order and usually answered in
 * order, so a ring of slots that grows to the {@link width} replaces a table, without hashing and without garbage.
 */
export class RequestWindow<T = unknown> {
  /** Of `#lowest` to `#next - 1`, at the number modulo their count, which is a power of two. */
  #slots: (T | typeof ANSWERED | undefined)[] = new Array<undefined>(SLOTS_MIN).fill(undefined)
  #next = 1
  #lowest = 1
  #size = 0
  /** Answered, and not acknowledged on this connection. */
  readonly #unreported = new CompactingSet<number>()
  #reportedLowest = 1

  /** How far the next number is above the lowest open one. */
  get width(): number {
    return this.#next - this.#lowest
  }

  /** Numbers with a request. */
  get size(): number {
    return this.#size
  }

  take(): number {
    if (this.width === this.#slots.length) this.#grow()
    return this.#next++
  }

  /** Sets the request of an open number. */
  set(request: number, value: T): void {
    this.#slots[this.#at(request)] = value
    this.#size++
  }

  get(request: number): T | undefined {
    if (request < this.#lowest || request >= this.#next) return undefined
    const slot = this.#slots[this.#at(request)]
    return slot === ANSWERED ? undefined : slot
  }

  /** Removes the request of a number, which stays open. False: it had none. */
  drop(request: number): boolean {
    if (this.get(request) === undefined) return false
    this.#slots[this.#at(request)] = undefined
    this.#size--
    return true
  }

  /** In the order of their numbers. */
  values(): T[] {
    const all: T[] = []
    for (let request = this.#lowest; request < this.#next; request++) {
      const value = this.get(request)
      if (value !== undefined) all.push(value)
    }
    return all
  }

  answered(request: number): void {
    if (!this.#isOpen(request)) return
    this.drop(request)
    if (request !== this.#lowest) {
      this.#slots[this.#at(request)] = ANSWERED
      this.#unreported.add(request)
      return
    }
    this.#lowest++
    while (this.#lowest < this.#next && this.#slots[this.#at(this.#lowest)] === ANSWERED) {
      this.#slots[this.#at(this.#lowest)] = undefined
      if (this.#unreported.size > 0) this.#unreported.delete(this.#lowest)
      this.#lowest++
    }
  }

  get hasUnreported(): boolean {
    return this.#unreported.size > 0 || this.#reportedLowest < this.#lowest
  }

  /** What the next command acknowledges; counts as acknowledged. */
  takeAck(): Ack {
    const also = this.#unreported.size === 0 ? NOTHING : [...this.#unreported]
    if (also.length > 0) this.#unreported.clear()
    this.#reportedLowest = this.#lowest
    return { lowest: this.#lowest, also }
  }

  /** The command that carried `ack` may not have been applied. */
  restoreAck(ack: Ack): void {
    for (const request of ack.also) if (request >= this.#lowest) this.#unreported.add(request)
    this.#reportedLowest = Math.min(this.#reportedLowest, ack.lowest - 1)
  }

  /** The connection is gone, and perhaps all acknowledgements that were sent on it. */
  restoreAllAcks(): void {
    for (let request = this.#lowest; request < this.#next; request++) {
      if (this.#slots[this.#at(request)] === ANSWERED) this.#unreported.add(request)
    }
    this.#reportedLowest = 0
  }

  #isOpen(request: number): boolean {
    return request >= this.#lowest && request < this.#next && this.#slots[this.#at(request)] !== ANSWERED
  }

  #at(request: number): number {
    return request & (this.#slots.length - 1)
  }

  #grow(): void {
    const before = this.#slots
    const mask = before.length - 1
    this.#slots = new Array<undefined>(2 * before.length).fill(undefined)
    for (let request = this.#lowest; request < this.#next; request++) {
      this.#slots[this.#at(request)] = before[request & mask]
    }
  }
}
