import type { Operation } from './operation.js'

/** No node of a timeline. */
export const NO_NODE = -1

/**
 * The calls and returns of one partition in order, as a doubly linked list from which an operation can be lifted and
 * put back in constant time (Lowe, "Testing for linearizability", section 4). Node 0 is the head.
 * An operation of unknown outcome has a call and no return.
 */
export class Timeline {
  /** Operations in order of their calls. */
  readonly operations: readonly Operation[]
  /** The operation of each node. */
  readonly operationAt: Int32Array
  readonly callOf: Int32Array
  readonly returnOf: Int32Array
  readonly next: Int32Array
  private readonly previous: Int32Array

  constructor(unordered: readonly Operation[]) {
    this.operations = unordered.toSorted((a, b) => a.invokedAt - b.invokedAt)
    const count = this.operations.length
    this.callOf = new Int32Array(count)
    this.returnOf = new Int32Array(count).fill(NO_NODE)
    const events = eventsOf(this.operations)
    this.operationAt = new Int32Array(events.length + 1).fill(-1)
    this.next = new Int32Array(events.length + 1)
    this.previous = new Int32Array(events.length + 1)
    for (const [i, event] of events.entries()) {
      const node = i + 1
      this.operationAt[node] = event.operation
      const nodes = event.isReturn ? this.returnOf : this.callOf
      nodes[event.operation] = node
      this.previous[node] = node - 1
      this.next[node - 1] = node
    }
    this.next[events.length] = NO_NODE
  }

  isReturn(node: number): boolean {
    return this.callOf[this.operationAt[node] as number] !== node
  }

  /** Takes an operation out of the list. */
  lift(operation: number): void {
    this.unlink(this.callOf[operation] as number)
    const end = this.returnOf[operation] as number
    if (end !== NO_NODE) this.unlink(end)
  }

  /** Puts back the operation that was lifted last. */
  putBack(operation: number): void {
    const end = this.returnOf[operation] as number
    if (end !== NO_NODE) this.relink(end)
    this.relink(this.callOf[operation] as number)
  }

  private unlink(node: number): void {
    const before = this.previous[node] as number
    const after = this.next[node] as number
    this.next[before] = after
    if (after !== NO_NODE) this.previous[after] = before
  }

  private relink(node: number): void {
    this.next[this.previous[node] as number] = node
    const after = this.next[node] as number
    if (after !== NO_NODE) this.previous[after] = node
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
