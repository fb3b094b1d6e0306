import { scramble } from './zobrist.js'

/** A store that has no room for another key. */
export const FULL = -1

/**
 * Numbers the pairs of (set of required operations, state) that a search meets, from 0 in order of their first time.
 * `high` and `low` are the Zobrist hash of the set alone.
 */
export interface KeyStore {
  /** Keys so far. */
  readonly size: number
  /** The number of a pair, which is new if it equals the size before; or {@link FULL}. */
  numberOf(set: Int32Array, high: number, low: number, state: number): number
}

const FIRST_SLOTS = 1 << 10
const FILL = 0.6
const LANES = 3

/**
 * Keeps only 64 bits of hash per key: two keys with one hash would be taken for one, which could end a search too early
 * (about 2^-64 per pair), so an illegal verdict that used it is repeated with {@link ExactKeys}.
 */
export class HashedKeys implements KeyStore {
  size = 0
  /** Per slot two halves of a hash and the key's number plus one; 0 is free. */
  #slots = new Int32Array(LANES * FIRST_SLOTS)

  readonly #maxKeys: number

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  numberOf(_set: Int32Array, high: number, low: number, state: number): number {
    const top = high ^ scramble(state, 0x1b873593)
    const bottom = low ^ scramble(state, 0x52dce729)
    const at = find(this.#slots, top, bottom)
    const known = this.#slots[at + 2] as number
    if (known !== 0) return known - 1
    if (this.size >= this.#maxKeys) return FULL
    this.size++
    put(this.#slots, at, top, bottom, this.size)
    if (this.size > (this.#slots.length / LANES) * FILL) this.#grow()
    return this.size - 1
  }

  #grow(): void {
    const old = this.#slots
    this.#slots = new Int32Array(old.length * 2)
    for (let i = 0; i < old.length; i += LANES) {
      const number = old[i + 2] as number
      if (number === 0) continue
      const top = old[i] as number
      const bottom = old[i + 1] as number
      put(this.#slots, find(this.#slots, top, bottom), top, bottom, number)
    }
  }
}

/** Where a hash is, or the free slot where it belongs. */
function find(slots: Int32Array, top: number, bottom: number): number {
  const mask = slots.length / LANES - 1
  let slot = (top ^ Math.imul(bottom, 0x9e3779b1)) & mask
  for (;;) {
    const at = slot * LANES
    if (slots[at + 2] === 0 || (slots[at] === top && slots[at + 1] === bottom)) return at
    slot = (slot + 1) & mask
  }
}

function put(slots: Int32Array, at: number, top: number, bottom: number, number: number): void {
  slots[at] = top
  slots[at + 1] = bottom
  slots[at + 2] = number
}

/** Keeps whole keys: never takes one for another, for more memory. */
export class ExactKeys implements KeyStore {
  size = 0
  /** Number of a key plus one; 0 is free. */
  #slots = new Int32Array(FIRST_SLOTS)
  #keys: Int32Array
  readonly #stride: number
  readonly #maxKeys: number

  readonly #words: number

  /** `words`: length of the sets. The keys never take more than `maxBytes`. */
  constructor(words: number, maxBytes: number) {
    this.#words = words
    this.#stride = words + 2
    this.#maxKeys = Math.max(1, Math.floor(maxBytes / (4 * this.#stride)))
    this.#keys = new Int32Array(this.#stride * Math.min(FIRST_SLOTS, this.#maxKeys))
  }

  numberOf(set: Int32Array, high: number, low: number, state: number): number {
    const hash = high ^ Math.imul(low, 0x9e3779b1) ^ scramble(state, 0x1b873593)
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (;;) {
      const number = (this.#slots[slot] as number) - 1
      if (number < 0) break
      if (this.#isKey(number, set, hash, state)) return number
      slot = (slot + 1) & mask
    }
    if (this.size >= this.#maxKeys) return FULL
    this.#append(set, hash, state)
    this.#slots[slot] = this.size
    if (this.size > this.#slots.length * FILL) this.#growSlots()
    return this.size - 1
  }

  #isKey(number: number, set: Int32Array, hash: number, state: number): boolean {
    const at = number * this.#stride
    if (this.#keys[at] !== hash || this.#keys[at + 1] !== state) return false
    for (let i = 0; i < this.#words; i++) if (this.#keys[at + 2 + i] !== set[i]) return false
    return true
  }

  #append(set: Int32Array, hash: number, state: number): void {
    const at = this.size * this.#stride
    if (at + this.#stride > this.#keys.length) {
      const grown = new Int32Array(Math.min(this.#keys.length * 2, this.#maxKeys * this.#stride))
      grown.set(this.#keys)
      this.#keys = grown
    }
    this.#keys[at] = hash
    this.#keys[at + 1] = state
    this.#keys.set(set, at + 2)
    this.size++
  }

  #growSlots(): void {
    this.#slots = new Int32Array(this.#slots.length * 2)
    const mask = this.#slots.length - 1
    for (let number = 0; number < this.size; number++) {
      let slot = (this.#keys[number * this.#stride] as number) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = number + 1
    }
  }
}
