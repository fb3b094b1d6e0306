import { CompactingMap } from '../compacting-map.js'

/** A power of two. */
const PARTS = 1024
/** Names mostly differ at their end. */
const HASHED_CHARS = 8

/**
 * Values by name, many of them for long, some for a moment and again and again.
 *
 * A `Map` keeps what was deleted in its chains until it is made anew, which a large one is after as many changes as it has entries. A
 * name that is deleted and set again so often has by then thousands of dead entries in its chain, and each look for it, while it
 * is not there, walks through them: with 100 000 others 2 µs instead of 0.1. In small tables, which {@link CompactingMap} makes anew
 * early, chains stay short. There is no order.
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

  /** May be used on after changes, as an iterator of a {@link CompactingMap} may. */
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
