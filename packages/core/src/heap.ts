/**
 * A binary heap: the first element in the order `isBefore` is at its top. Elements of the same rank leave in no particular
 * order.
 *
 * An element whose rank changes while it is inside must be reported with {@link Heap.update}. With `onPlace`, each element is
 * told its place whenever that changes, which makes removal from the middle possible.
 */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #onPlace: ((element: T, place: number) => void) | undefined
  readonly #items: T[] = []

  constructor(isBefore: (a: T, b: T) => boolean, onPlace?: (element: T, place: number) => void) {
    this.#isBefore = isBefore
    this.#onPlace = onPlace
  }

  get size(): number {
    return this.#items.length
  }

  /** The first element, which stays inside; undefined when the heap is empty. */
  peek(): T | undefined {
    return this.#items[0]
  }

  push(element: T): void {
    this.#items.push(element)
    this.#moveUp(this.#items.length - 1, element)
  }

  /** Removes and returns the first element; undefined when the heap is empty. */
  pop(): T | undefined {
    const first = this.#items[0]
    const last = this.#items.pop()
    if (this.#items.length > 0) this.#moveDown(0, last as T)
    return first
  }

  /** The element at `place`, as reported by `onPlace`. */
  at(place: number): T | undefined {
    return this.#items[place]
  }

  /** Removes the element at `place`. */
  removeAt(place: number): void {
    const last = this.#items.pop() as T
    if (place < this.#items.length) this.#settle(place, last)
  }

  /** Restores the order after the rank of the element at `place` has changed. */
  update(place: number): void {
    this.#settle(place, this.#items[place] as T)
  }

  #settle(place: number, element: T): void {
    const parent = this.#items[(place - 1) >> 1]
    if (place > 0 && parent !== undefined && this.#isBefore(element, parent)) this.#moveUp(place, element)
    else this.#moveDown(place, element)
  }

  #moveUp(start: number, element: T): void {
    const items = this.#items
    const isBefore = this.#isBefore
    let place = start
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = items[above] as T
      if (!isBefore(element, parent)) break
      this.#put(place, parent)
      place = above
    }
    this.#put(place, element)
  }

  #moveDown(start: number, element: T): void {
    const items = this.#items
    const isBefore = this.#isBefore
    const size = items.length
    let place = start
    for (;;) {
      let below = 2 * place + 1
      if (below >= size) break
      const right = below + 1
      if (right < size && isBefore(items[right] as T, items[below] as T)) below = right
      const child = items[below] as T
      if (!isBefore(child, element)) break
      this.#put(place, child)
      place = below
    }
    this.#put(place, element)
  }

  #put(place: number, element: T): void {
    this.#items[place] = element
    if (this.#onPlace !== undefined) this.#onPlace(element, place)
  }
}
