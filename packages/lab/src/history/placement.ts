import type { PlacedOperations } from './cache.js'
import type { EntryList } from './entry-list.js'
import { type ZobristKeys, zobristKeys } from './zobrist.js'

/** The set of placed operations as bits, required and optional ones apart, with the hash of the required ones. */
export class Placement implements PlacedOperations {
  readonly required: Int32Array
  readonly optional: Int32Array
  high = 0
  low = 0
  /** Operations of unknown outcome in order of their calls. */
  readonly openEnded: readonly number[]
  readonly #bits: Int32Array
  readonly #keys: ZobristKeys

  readonly #entries: EntryList

  constructor(entries: EntryList) {
    this.#entries = entries
    const { operations } = entries
    const openEnded: number[] = []
    this.#bits = Int32Array.from(operations, ({ outcome }, i) => {
      if (outcome === 'unknown') return openEnded.push(i) - 1
      return i - openEnded.length
    })
    this.openEnded = openEnded
    this.required = new Int32Array(wordsFor(operations.length - openEnded.length))
    this.optional = new Int32Array(wordsFor(openEnded.length))
    this.#keys = zobristKeys(operations.length - openEnded.length)
  }

  has(operation: number): boolean {
    const bit = this.#bits[operation] as number
    return ((this.#setOf(operation)[bit >>> 5] as number) & (1 << (bit & 31))) !== 0
  }

  /** Adds or removes an operation. */
  flip(operation: number): void {
    const bit = this.#bits[operation] as number
    const set = this.#setOf(operation)
    set[bit >>> 5] = (set[bit >>> 5] as number) ^ (1 << (bit & 31))
    if (set === this.optional) return
    this.high ^= this.#keys.high[bit] as number
    this.low ^= this.#keys.low[bit] as number
  }

  /** Where an operation stands in {@link openEnded}. */
  openIndexOf(operation: number): number {
    return this.#bits[operation] as number
  }

  #setOf(operation: number): Int32Array {
    return this.#entries.isRequired(operation) ? this.required : this.optional
  }
}

function wordsFor(count: number): number {
  return Math.ceil(count / 32)
}
