import { Heap } from '../heap.js'

/** What elements are sorted by. The keys of one sorter are all numbers or all strings. */
export type Key = number | string

export function isBefore(a: Key, b: Key): boolean {
  return (a as number) < (b as number)
}

/** Size of a run of elements that were added out of order: small enough to be sorted in one call. */
const SORTED_MAX = 1024
/** Largest run of elements that were added in order: a larger array takes long to grow. */
const RUN_MAX = 65_536

interface Run<E> {
  readonly items: readonly E[]
  next: number
}

/**
 * Sorts elements by ascending key, whatever the order in which they were added. No call takes long, however many elements
 * there are: they are sorted in runs as they are added, and the runs are merged as they are read.
 */
export class MergeSorter<E> {
  readonly #keyOf: (element: E) => Key
  /** Complete runs, the one with the lowest next key first. */
  readonly #runs: Heap<Run<E>>
  /** The run to which elements are added. */
  #open: E[] = []
  #isSorted = true
  #last: Key | undefined

  constructor(keyOf: (element: E) => Key) {
    this.#keyOf = keyOf
    const next = ({ items, next }: Run<E>): Key => keyOf(items[next] as E)
    this.#runs = new Heap((a, b) => isBefore(next(a), next(b)))
  }

  add(element: E): void {
    const key = this.#keyOf(element)
    if (this.#last !== undefined && isBefore(key, this.#last)) {
      if (this.#isSorted && this.#open.length >= SORTED_MAX) this.#endRun()
      else this.#isSorted = false
    }
    this.#open.push(element)
    this.#last = key
    if (this.#open.length >= (this.#isSorted ? RUN_MAX : SORTED_MAX)) this.#endRun()
  }

  /** Ends the adding: from now on `next` returns the elements. */
  close(): void {
    this.#endRun()
  }

  /** The next element; undefined after the last. Elements with the same key follow each other. */
  next(): E | undefined {
    const first = this.#runs.peek()
    if (first === undefined) return undefined
    const element = first.items[first.next++] as E
    if (first.next === first.items.length) this.#runs.removeAt(0)
    else this.#runs.update(0)
    return element
  }

  #endRun(): void {
    const open = this.#open
    const keyOf = this.#keyOf
    if (open.length === 0) return
    if (!this.#isSorted) open.sort((a, b) => (isBefore(keyOf(a), keyOf(b)) ? -1 : isBefore(keyOf(b), keyOf(a)) ? 1 : 0))
    this.#runs.push({ items: open, next: 0 })
    this.#open = []
    this.#isSorted = true
    this.#last = undefined
  }
}
