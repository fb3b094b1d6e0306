import type { Waiter } from './elements.js'

/** A binary heap of waiters, the earliest arrival first. The same waiter may be in it more than once. */
export class ArrivalHeap {
  readonly #items: Waiter[] = []

  push(waiter: Waiter): void {
    const items = this.#items
    let place = items.length
    items.push(waiter)
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = items[above] as Waiter
      if (parent.arrival <= waiter.arrival) break
      items[place] = parent
      place = above
    }
    items[place] = waiter
  }

  pop(): Waiter | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (first === undefined || last === undefined || items.length === 0) return first
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      if (below >= items.length) break
      if (below + 1 < items.length && (items[below + 1] as Waiter).arrival < (items[below] as Waiter).arrival) below++
      const child = items[below] as Waiter
      if (child.arrival >= last.arrival) break
      items[place] = child
      place = below
    }
    items[place] = last
    return first
  }
}
