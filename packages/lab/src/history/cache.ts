import { FULL, type KeyStore } from './key-store.js'

/** What happened to a configuration that was offered to the cache. */
export type CacheAnswer = 'new' | 'known' | 'full'

/** The operations placed so far. */
export interface PlacedOperations {
  /** Those that must be placed. */
  readonly required: Int32Array
  /** Those of unknown outcome. */
  readonly optional: Int32Array
  /** Zobrist hash of the required ones. */
  readonly high: number
  readonly low: number
}

const NO_NODE = 0
const FIRST_NODES = 1 << 10

/**
 * Remembers configurations (operations placed, state) that need no second look. With the same required operations and the
 * same state, one that has spent more of the optional operations cannot do better: whatever order completes it also completes
 * the thriftier one. So a configuration is known if one with a subset of its optional operations was seen.
 */
export class ConfigurationCache {
  readonly #words: number
  readonly #stride: number
  /** First node of each key's list. */
  #heads = new Int32Array(FIRST_NODES)
  /** Lists of optional sets: the next node, then the words. Node 0 is not used. */
  #nodes: Int32Array
  #nodeCount = 1

  readonly #keys: KeyStore
  readonly #maxConfigurations: number

  /** `words`: length of the optional sets; 0 if there are none. */
  constructor(keys: KeyStore, words: number, maxConfigurations: number) {
    this.#keys = keys
    this.#maxConfigurations = maxConfigurations
    this.#words = words
    this.#stride = words + 1
    this.#nodes = new Int32Array(words === 0 ? 0 : FIRST_NODES * this.#stride)
  }

  add({ required, optional, high, low }: PlacedOperations, state: number): CacheAnswer {
    const before = this.#keys.size
    const key = this.#keys.numberOf(required, high, low, state)
    if (key === FULL) return 'full'
    if (this.#words === 0) return key === before ? 'new' : 'known'
    if (key >= this.#heads.length) this.#heads = grown(this.#heads)
    const head = this.#heads[key] as number
    if (this.#isAnySubset(head, optional)) return 'known'
    if (this.#nodeCount > this.#maxConfigurations) return 'full'
    const at = this.#nodeCount * this.#stride
    if (at + this.#stride > this.#nodes.length) this.#nodes = grown(this.#nodes)
    this.#nodes[at] = head
    this.#nodes.set(optional, at + 1)
    this.#heads[key] = this.#nodeCount++
    return 'new'
  }

  #isAnySubset(head: number, optional: Int32Array): boolean {
    for (let node = head; node !== NO_NODE; node = this.#nodes[node * this.#stride] as number) {
      if (this.#isSubset(node * this.#stride + 1, optional)) return true
    }
    return false
  }

  #isSubset(at: number, optional: Int32Array): boolean {
    for (let i = 0; i < this.#words; i++) {
      if (((this.#nodes[at + i] as number) & ~(optional[i] as number)) !== 0) return false
    }
    return true
  }
}

function grown(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(array.length * 2)
  larger.set(array)
  return larger
}
