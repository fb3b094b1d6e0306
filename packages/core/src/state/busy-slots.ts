import { assert } from '../assert.js'

const WORD = 32
const ALL = -1

/**
 * The slots of a semaphore that cannot be granted, because of a hold or a lock delay. There may be 65 536 slots, and each grant
 * needs the lowest free one: they are bits, and the leading words without a free slot are skipped.
 */
export class BusySlots {
  /** Number of busy slots. */
  count = 0
  readonly #words: number[] = []
  /** No word below this one has a free slot. */
  #full = 0

  occupy(slot: number): void {
    const word = slot >>> 5
    while (this.#words.length <= word) this.#words.push(0)
    const bits = this.#words[word] as number
    const bit = 1 << (slot & (WORD - 1))
    assert((bits & bit) === 0, `slot ${slot} is granted twice`)
    this.#words[word] = bits | bit
    this.count++
  }

  free(slot: number): void {
    const word = slot >>> 5
    const bits = this.#words[word] ?? 0
    const bit = 1 << (slot & (WORD - 1))
    assert((bits & bit) !== 0, `slot ${slot} is freed twice`)
    this.#words[word] = bits & ~bit
    this.count--
    if (word < this.#full) this.#full = word
  }

  /** Returns the lowest free slot, which is beyond the size of the semaphore if all its slots are busy. */
  lowestFree(): number {
    const words = this.#words
    let word = this.#full
    while (words[word] === ALL) word++
    this.#full = word
    const free = ~(words[word] ?? 0)
    return word * WORD + (WORD - 1 - Math.clz32(free & -free))
  }
}
