/** What elements are ordered by: all of one order are numbers, or all are texts. */
export type Key = number | string

export function isBefore(a: Key, b: Key): boolean {
  return (a as number) < (b as number)
}

/** Elements that come out of order are sorted in runs of so many: short enough to be sorted in one go. */
const SORTED_MAX = 1024
/** Elements that come in order make runs of up to so many: an array that grows further takes long to move. */
const RUN_MAX = 65_536

interface Run<E> {
  readonly items: readonly E[]
  next: number
}

/**
 * Gives elements back by ascending key, in whatever order they came. No call takes long, however many there are: they are
 * sorted in runs as they come, and the runs are merged as they go.
 */
export class MergeSorter<E> {
  /** A binary heap by the key of the next element, once `close` was called. */
  readonly #runs: Run<E>[] = []
  #open: E[] = []
  #isSorted = true
  #last: Key | undefined

  readonly #keyOf: (element: E) => Key

  constructor(keyOf: (element: E) => Key) {
    this.#keyOf = keyOf
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

  /** All elements have come. */
  close(): void {
    this.#endRun()
    for (let place = (this.#runs.length >> 1) - 1; place >= 0; place--) this.#sink(place)
  }

  /** The next element; undefined after the last. Elements of the same key follow each other. */
  next(): E | undefined {
    const runs = this.#runs
    const first = runs[0]
    if (first === undefined) return undefined
    const element = first.items[first.next++] as E
    if (first.next === first.items.length) {
      const last = runs.pop() as Run<E>
      if (last === first) return element
      runs[0] = last
    }
    this.#sink(0)
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

  #sink(start: number): void {
    const runs = this.#runs
    const run = runs[start] as Run<E>
    const key = this.#head(run)
    let place = start
    for (;;) {
      let below = 2 * place + 1
      if (below >= runs.length) break
      const right = below + 1
      if (right < runs.length && isBefore(this.#head(runs[right] as Run<E>), this.#head(runs[below] as Run<E>)))
        below = right
      const child = runs[below] as Run<E>
      if (!isBefore(this.#head(child), key)) break
      runs[place] = child
      place = below
    }
    runs[place] = run
  }

  #head(run: Run<E>): Key {
    return this.#keyOf(run.items[run.next] as E)
  }
}
