import type { Operation } from './operation.js'

/** No node of a entries. */
export const NO_NODE = -1
const HEAD = 0

/**
 * The calls and returns of one partition, numbered in order of time from 1. Those of required operations form a doubly
 * linked list from which an operation can be lifted and put back in constant time (Lowe, "Testing for linearizability").
 * An operation of unknown outcome has a call, no return, and no place in the list.
 */
export class EntryList {
  /** Operations in order of their calls. */
  readonly operations: readonly Operation[]
  /** The operation of each node. */
  readonly operationAt: Int32Array
  readonly callOf: Int32Array
  readonly returnOf: Int32Array
  readonly next: Int32Array
  readonly #previous: Int32Array

  constructor(unordered: readonly Operation[]) {
    this.operations = unordered.toSorted((a, b) => a.invokedAt - b.invokedAt)
    const count = this.operations.length
    this.callOf = new Int32Array(count)
    this.returnOf = new Int32Array(count).fill(NO_NODE)
    const events = eventsOf(this.operations)
    this.operationAt = new Int32Array(events.length + 1).fill(-1)
    this.next = new Int32Array(events.length + 1)
    this.#previous = new Int32Array(events.length + 1)
    let last = HEAD
    for (const [i, event] of events.entries()) {
      const node = i + 1
      this.operationAt[node] = event.operation
      const nodes = event.isReturn ? this.returnOf : this.callOf
      nodes[event.operation] = node
      if (this.operations[event.operation]?.outcome !== 'ok') continue
      this.#previous[node] = last
      this.next[last] = node
      last = node
    }
    this.next[last] = NO_NODE
  }

  /** The first node in the list. */
  get first(): number {
    return this.next[HEAD] as number
  }

  /** The first return in the list: what is called later cannot be placed yet. */
  get firstReturn(): number {
    let node = this.first
    while (!this.isReturn(node)) node = this.next[node] as number
    return node
  }

  /** Whether an operation must be placed: it was acknowledged. */
  isRequired(operation: number): boolean {
    return this.returnOf[operation] !== NO_NODE
  }

  isReturn(node: number): boolean {
    return this.callOf[this.operationAt[node] as number] !== node
  }

  /** Takes a required operation out of the list. */
  lift(operation: number): void {
    this.#unlink(this.callOf[operation] as number)
    this.#unlink(this.returnOf[operation] as number)
  }

  /** Puts back the required operation that was lifted last. */
  putBack(operation: number): void {
    this.#relink(this.returnOf[operation] as number)
    this.#relink(this.callOf[operation] as number)
  }

  #unlink(node: number): void {
    const before = this.#previous[node] as number
    const after = this.next[node] as number
    this.next[before] = after
    if (after !== NO_NODE) this.#previous[after] = before
  }

  #relink(node: number): void {
    this.next[this.#previous[node] as number] = node
    const after = this.next[node] as number
    if (after !== NO_NODE) this.#previous[after] = node
  }
}

interface TimedEvent {
  readonly at: number
  readonly operation: number
  readonly isReturn: boolean
}

/** Calls before returns at the same time: what may overlap counts as overlapping. */
function eventsOf(operations: readonly Operation[]): TimedEvent[] {
  const events: TimedEvent[] = []
  for (const [operation, { invokedAt, returnedAt, outcome }] of operations.entries()) {
    events.push({ at: invokedAt, operation, isReturn: false })
    if (outcome === 'ok') events.push({ at: returnedAt as number, operation, isReturn: true })
  }
  return events.sort((a, b) => a.at - b.at || Number(a.isReturn) - Number(b.isReturn) || a.operation - b.operation)
}
