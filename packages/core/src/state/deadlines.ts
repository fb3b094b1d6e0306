import { assert } from '../assert.js'

/** What can be due; the numbers are the order in which things due at the same millisecond happen. */
export const DEADLINE_SESSION = 0
export const DEADLINE_WAIT = 1
export const DEADLINE_DELAY = 2

/** The end of cluster time: far away, and still a whole number with a successor. */
export const TIME_MAX = Number.MAX_SAFE_INTEGER - 1

/** `ms` after `now`, but not beyond the end of time: points of time stay whole numbers. */
export function deadlineAfter(now: number, ms: number): number {
  return Math.min(now + ms, TIME_MAX)
}

/** Something that happens at a point of cluster time. */
export interface Deadline {
  dueAt: number
  readonly dueKind: number
  readonly dueId: number
  /** Place in the heap; −1: not in it. Owned by {@link DeadlineHeap}. */
  duePlace: number
}

/** A binary heap by (time, kind, id) that can remove from the middle. */
export class DeadlineHeap {
  readonly #items: Deadline[] = []

  get size(): number {
    return this.#items.length
  }

  peek(): Deadline | undefined {
    return this.#items[0]
  }

  push(item: Deadline): void {
    assert(item.duePlace === -1, `due ${item.dueKind}/${item.dueId} is in the heap already`)
    this.#items.push(item)
    this.#up(this.#items.length - 1, item)
  }

  remove(item: Deadline): void {
    const place = item.duePlace
    if (place === -1) return
    assert(this.#items[place] === item, `due ${item.dueKind}/${item.dueId} is not at its place ${place}`)
    item.duePlace = -1
    const last = this.#items.pop() as Deadline
    if (last === item) return
    this.#place(place, last)
  }

  /** To be called after `dueAt` has changed. */
  moved(item: Deadline): void {
    this.#place(item.duePlace, item)
  }

  #place(place: number, item: Deadline): void {
    const parent = this.#items[(place - 1) >> 1]
    if (place > 0 && parent !== undefined && before(item, parent)) this.#up(place, item)
    else this.#down(place, item)
  }

  #up(start: number, item: Deadline): void {
    let place = start
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#items[above] as Deadline
      if (!before(item, parent)) break
      this.#items[place] = parent
      parent.duePlace = place
      place = above
    }
    this.#items[place] = item
    item.duePlace = place
  }

  #down(start: number, item: Deadline): void {
    const size = this.#items.length
    let place = start
    for (;;) {
      let below = 2 * place + 1
      if (below >= size) break
      const right = below + 1
      if (right < size && before(this.#items[right] as Deadline, this.#items[below] as Deadline)) below = right
      const child = this.#items[below] as Deadline
      if (!before(child, item)) break
      this.#items[place] = child
      child.duePlace = place
      place = below
    }
    this.#items[place] = item
    item.duePlace = place
  }
}

function before(a: Deadline, b: Deadline): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt
  if (a.dueKind !== b.dueKind) return a.dueKind < b.dueKind
  return a.dueId < b.dueId
}
