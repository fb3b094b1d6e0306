import { CompactingMap } from '../compacting-map.js'

/** Number of tables, a power of two. */
const PARTS = 1024
/** Characters of a name that are hashed: the last ones, since names mostly differ there. */
const HASHED_CHARS = 8

/**
 * A map from names to values, without an order, in which some names are deleted and added again and again.
 *
 * A `Map` keeps deleted entries in its hash chains until it is rehashed, which for a large one is after as many changes as it has
 * entries. A name that comes and goes then has thousands of dead entries in its chain, and every lookup while it is absent
 * walks through them: 2 µs instead of 0.1 with 100 000 other names. Many small tables, each a {@link CompactingMap} that is
 * replaced early, keep the chains short.
 */
export class NameTable<V> {
  readonly #parts = new Array<CompactingMap<string, V> | undefined>(PARTS).fill(undefined)

  get(name: string): V | undefined {
    return this.#parts[partOf(name)]?.get(name)
  }

  set(name: string, value: V): void {
    const at = partOf(name)
    let part = this.#parts[at]
    if (part === undefined) {
      part = new CompactingMap()
      this.#parts[at] = part
    }
    part.set(name, value)
  }

  delete(name: string): boolean {
    return this.#parts[partOf(name)]?.delete(name) ?? false
  }

  get size(): number {
    let size = 0
    for (const part of this.#parts) size += part?.size ?? 0
    return size
  }

  /** The iterator outlives changes like that of a {@link CompactingMap}. */
  *values(): IterableIterator<V> {
    for (const part of this.#parts) if (part !== undefined) yield* part.values()
  }
}

function partOf(name: string): number {
  const { length } = name
  let hash = length
  for (let i = Math.max(0, length - HASHED_CHARS); i < length; i++)
    hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0
  return (hash ^ (hash >>> 10)) & (PARTS - 1)
}
