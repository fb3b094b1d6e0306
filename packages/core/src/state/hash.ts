/** Kinds of elements. */
export const HASH_SESSION = 1
export const HASH_ANSWER = 2
export const HASH_CHANGE = 3
export const HASH_HOLD = 4
export const HASH_WAITER = 5
export const HASH_DELAY = 6
export const HASH_REGISTER = 7
export const HASH_PERMITS = 8
export const HASH_ACKNOWLEDGED = 9
export const HASH_GLOBAL = 10
export const HASH_LEASE = 11
export const HASH_OWNER = 12

/**
 * Observes every change of the state, since each goes through the hash. `owner` is the session, hold, waiter, delay, register or
 * lock that the element of that kind belongs to.
 */
export interface StateObserver {
  /** Called before an element is changed or removed. */
  beforeUpdate(kind: number, owner: unknown): void
  /**
   * Called after an element was changed or added. An answer, a change or an acknowledged number is not in its session yet;
   * everything else is in place.
   */
  afterUpdate(kind: number, owner: unknown): void
}

/**
 * An incremental hash of a set of elements: each element has two 32-bit numbers, and the hash is their sums. The order of
 * updates does not matter, so two replicas agree however they reached a state.
 *
 * An update is `start(…).put(…)….beginUpdate()` with the old value and the same with `endUpdate()` and the new value. A new
 * element has only the latter, a removed one only the former.
 */
export class SetHash {
  #low = 0
  #high = 0

  /** The element of the last `start(…).put(…)…`. */
  #a = 0
  #b = 0
  #kind = 0
  #owner: unknown = undefined

  observer: StateObserver | undefined = undefined

  start(kind: number, owner?: unknown): this {
    this.#kind = kind
    this.#owner = owner
    this.#a = Math.imul(kind + 1, 0x9e3779b1)
    this.#b = Math.imul(kind + 1, 0x85ebca77) ^ 0x5bd1e995
    return this
  }

  /** Mixes in a whole number, |n| ≤ 2^53. */
  put(value: number): this {
    const low = value | 0
    const high = Math.floor(value / 4294967296) | 0
    let a = Math.imul(this.#a ^ low, 0x85ebca6b)
    a = Math.imul(a ^ (a >>> 15) ^ high, 0xc2b2ae35)
    this.#a = a ^ (a >>> 13)
    let b = Math.imul(this.#b ^ low, 0xcc9e2d51)
    b = Math.imul(b ^ (b >>> 16) ^ high, 0x1b873593)
    this.#b = b ^ (b >>> 14)
    return this
  }

  putText(text: string): this {
    this.put(text.length)
    let a = this.#a
    let b = this.#b
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      a = Math.imul(a ^ unit, 0x01000193)
      b = Math.imul(b ^ unit, 0x5bd1e995)
      b ^= b >>> 15
    }
    this.#a = a
    this.#b = b
    return this.put(0)
  }

  putBytes(bytes: Uint8Array): this {
    this.put(bytes.length)
    let a = this.#a
    let b = this.#b
    for (let i = 0; i < bytes.length; i++) {
      a = Math.imul(a ^ (bytes[i] as number), 0x01000193)
      b = Math.imul(b ^ (bytes[i] as number), 0x5bd1e995)
      b ^= b >>> 15
    }
    this.#a = a
    this.#b = b
    return this.put(0)
  }

  putWide(value: bigint): this {
    return this.put(Number(value & 0xffffffffn)).put(Number(value >> 32n))
  }

  /** Adds the element in its new form. */
  endUpdate(): void {
    if (this.observer !== undefined) this.observer.afterUpdate(this.#kind, this.#owner)
    this.#low = (this.#low + this.#a) | 0
    this.#high = (this.#high + this.#b) | 0
  }

  /** Removes the element in its old form. */
  beginUpdate(): void {
    if (this.observer !== undefined) this.observer.beforeUpdate(this.#kind, this.#owner)
    this.#low = (this.#low - this.#a) | 0
    this.#high = (this.#high - this.#b) | 0
  }

  /** Returns 16 hex digits over the sums and over what was put since `start`. */
  digest(): string {
    this.put(this.#low).put(this.#high)
    return hex(this.#a) + hex(this.#b)
  }
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}
