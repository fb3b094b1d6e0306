/** Something that will happen. Ordered by time, then by the order in which it was planned. */
export interface Planned {
  readonly atUs: number
  readonly sequence: number
}

/** A binary heap of what will happen, the next one first. */
export class Heap<T extends Planned> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let i = items.length
    items.push(item)
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = items[parent] as T
      if (!isBefore(item, above)) break
      items[i] = above
      i = parent
    }
    items[i] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (first === undefined || last === undefined || items.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= items.length) break
      if (child + 1 < items.length && isBefore(items[child + 1] as T, items[child] as T)) child++
      const below = items[child] as T
      if (!isBefore(below, last)) break
      items[i] = below
      i = child
    }
    items[i] = last
    return first
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.sequence < b.sequence)
}
