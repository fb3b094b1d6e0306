import type { Index } from './types.js'

/** Appends that were sent and not acknowledged yet: a first-in, first-out list of (last index, bytes). */
export class Inflights {
  readonly #countMax: number
  readonly #bytesMax: number
  /** In ascending order of `index`; those before `#start` are acknowledged. */
  readonly #items: { readonly index: Index; readonly bytes: number }[] = []
  #start = 0
  /** Sum over the items from `#start` on. */
  #bytes = 0

  /** `bytesMax` 0: no bound on the bytes. */
  constructor(countMax: number, bytesMax: number) {
    this.#countMax = countMax
    this.#bytesMax = bytesMax
  }

  get count(): number {
    return this.#items.length - this.#start
  }

  get full(): boolean {
    return this.count >= this.#countMax || (this.#bytesMax > 0 && this.#bytes >= this.#bytesMax)
  }

  add(index: Index, bytes: number): void {
    this.#items.push({ index, bytes })
    this.#bytes += bytes
  }

  /** Removes the appends that end at or below `index`, which is acknowledged. */
  freeUpTo(index: Index): void {
    for (;;) {
      const item = this.#items[this.#start]
      if (item === undefined || item.index > index) break
      this.#bytes -= item.bytes
      this.#start++
    }
    if (this.#start > 32 && this.#start * 2 > this.#items.length) {
      this.#items.splice(0, this.#start)
      this.#start = 0
    }
  }

  reset(): void {
    this.#items.length = 0
    this.#start = 0
    this.#bytes = 0
  }
}
