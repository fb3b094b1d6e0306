import { assert } from '../assert.js'
import { Heap } from '../heap.js'

/** Kinds of deadlines. Those of the same millisecond expire in the order of these numbers. */
export const DEADLINE_SESSION = 0
export const DEADLINE_WAIT = 1
export const DEADLINE_DELAY = 2

/** The latest cluster time: it has a successor that is a safe integer, too. */
export const TIME_MAX = Number.MAX_SAFE_INTEGER - 1

/** The cluster time `ms` after `now`, at most {@link TIME_MAX}. */
export function deadlineAfter(now: number, ms: number): number {
  return Math.min(now + ms, TIME_MAX)
}

/** Something that expires at a cluster time. */
export interface Deadline {
  dueAt: number
  readonly dueKind: number
  readonly dueId: number
  /** Place in the heap; −1: not in it. Owned by {@link DeadlineHeap}. */
  duePlace: number
}

/** Deadlines in the order of (time, kind, id), any of which can be removed. */
export class DeadlineHeap {
  readonly #heap = new Heap<Deadline>(isBefore, (item, place) => {
    item.duePlace = place
  })

  get size(): number {
    return this.#heap.size
  }

  peek(): Deadline | undefined {
    return this.#heap.peek()
  }

  push(item: Deadline): void {
    assert(item.duePlace === -1, `deadline ${item.dueKind}/${item.dueId} is in the heap already`)
    this.#heap.push(item)
  }

  /** Does nothing if the deadline is not in the heap. */
  remove(item: Deadline): void {
    const place = item.duePlace
    if (place === -1) return
    assert(this.#heap.at(place) === item, `deadline ${item.dueKind}/${item.dueId} is not at its place ${place}`)
    item.duePlace = -1
    this.#heap.removeAt(place)
  }

  /** Restores the order after `dueAt` has changed. */
  update(item: Deadline): void {
    this.#heap.update(item.duePlace)
  }
}

function isBefore(a: Deadline, b: Deadline): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt
  if (a.dueKind !== b.dueKind) return a.dueKind < b.dueKind
  return a.dueId < b.dueId
}
