/**
 * The contents move into a new table after more deletions than this, and than there are entries left.
 *
 * Why: a `Map` that grows, shrinks or compacts itself makes a new table, and the old one keeps a reference to it. Once an
 * old table is in the old generation, it is garbage that keeps all later tables alive, with everything that was ever in
 * them, until the next full collection. A long-lived `Map` of short-lived entries thus turns all of them into old garbage,
 * at five times the cost of the map itself. A new `Map` breaks that chain.
 */
const DELETIONS_MAX = 64
/** Larger tables are not moved: they are replaced rarely, and a move would take too long. */
const SIZE_MAX = 16_384

/**
 * A `Map` in the order of insertion, for a long life and short-lived entries. An iterator that outlives a change may continue
 * through the previous table: it then returns entries that have been deleted since, and no new ones.
 */
export class CompactingMap<K, V> {
  #map = new Map<K, V>()
  #deletions = 0

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  set(key: K, value: V): this {
    this.#map.set(key, value)
    return this
  }

  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false
    if (++this.#deletions > DELETIONS_MAX && this.#deletions > this.#map.size && this.#map.size <= SIZE_MAX) {
      this.#map = this.#map.size === 0 ? new Map() : new Map(this.#map)
      this.#deletions = 0
    }
    return true
  }

  clear(): void {
    this.#map = new Map()
    this.#deletions = 0
  }

  keys(): MapIterator<K> {
    return this.#map.keys()
  }

  values(): MapIterator<V> {
    return this.#map.values()
  }

  entries(): MapIterator<[K, V]> {
    return this.#map.entries()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#map.entries()
  }
}

/** A `Set` in the order of insertion, for a long life and short-lived elements. See {@link CompactingMap} for its iterators. */
export class CompactingSet<T> {
  #set = new Set<T>()
  #deletions = 0

  get size(): number {
    return this.#set.size
  }

  has(element: T): boolean {
    return this.#set.has(element)
  }

  add(element: T): this {
    this.#set.add(element)
    return this
  }

  delete(element: T): boolean {
    if (!this.#set.delete(element)) return false
    if (++this.#deletions > DELETIONS_MAX && this.#deletions > this.#set.size && this.#set.size <= SIZE_MAX) {
      this.#set = this.#set.size === 0 ? new Set() : new Set(this.#set)
      this.#deletions = 0
    }
    return true
  }

  clear(): void {
    this.#set = new Set()
    this.#deletions = 0
  }

  values(): SetIterator<T> {
    return this.#set.values()
  }

  [Symbol.iterator](): SetIterator<T> {
    return this.#set.values()
  }
}
