import { scramble } from './zobrist.js'

/** What happened to a configuration that was offered to a cache. */
export type CacheAnswer = 'new' | 'known' | 'full'

/**
 * Remembers configurations (set of placed operations, state) that need no second look.
 * `high` and `low` are the Zobrist hash of the set alone.
 */
export interface ConfigurationCache {
  add(set: Int32Array, high: number, low: number, state: number): CacheAnswer
}

const FIRST_SLOTS = 1 << 10
const FILL = 0.6

/**
 * Keeps only 64 bits of hash per configuration: two configurations with one hash would be taken for one, which could
 * end a search too early (about 2^-64 per pair), so an illegal verdict that used it is repeated with {@link ExactCache}.
 */
export class HashedCache implements ConfigurationCache {
  private slots = new Int32Array(2 * FIRST_SLOTS)
  private size = 0

  constructor(private readonly maxEntries: number) {}

  add(_set: Int32Array, high: number, low: number, state: number): CacheAnswer {
    const top = high ^ scramble(state, 0x1b873593)
    const bottom = low ^ scramble(state, 0x52dce729) || 1 // a pair of zeros marks a free slot
    const at = find(this.slots, top, bottom)
    if (this.slots[at + 1] !== 0) return 'known'
    if (this.size >= this.maxEntries) return 'full'
    this.slots[at] = top
    this.slots[at + 1] = bottom
    this.size++
    if (this.size > (this.slots.length / 2) * FILL) this.grow()
    return 'new'
  }

  private grow(): void {
    const old = this.slots
    this.slots = new Int32Array(old.length * 2)
    for (let i = 0; i < old.length; i += 2) {
      const bottom = old[i + 1] as number
      if (bottom === 0) continue
      const at = find(this.slots, old[i] as number, bottom)
      this.slots[at] = old[i] as number
      this.slots[at + 1] = bottom
    }
  }
}

function find(slots: Int32Array, top: number, bottom: number): number {
  const mask = slots.length / 2 - 1
  let slot = (top ^ Math.imul(bottom, 0x9e3779b1)) & mask
  for (;;) {
    const at = slot * 2
    if (slots[at + 1] === 0 || (slots[at] === top && slots[at + 1] === bottom)) return at
    slot = (slot + 1) & mask
  }
}

/** Keeps whole configurations: never takes one for another, for more memory. */
export class ExactCache implements ConfigurationCache {
  /** Number of an entry plus one; 0 is free. */
  private slots = new Int32Array(FIRST_SLOTS)
  private entries: Int32Array
  private size = 0
  private readonly stride: number
  private readonly maxEntries: number

  /** `words`: length of the sets. The entries never take more than `maxBytes`. */
  constructor(
    private readonly words: number,
    maxBytes: number,
  ) {
    this.stride = words + 2
    this.maxEntries = Math.max(1, Math.floor(maxBytes / (4 * this.stride)))
    this.entries = new Int32Array(this.stride * Math.min(FIRST_SLOTS, this.maxEntries))
  }

  add(set: Int32Array, high: number, low: number, state: number): CacheAnswer {
    const hash = high ^ Math.imul(low, 0x9e3779b1) ^ scramble(state, 0x1b873593)
    const mask = this.slots.length - 1
    let slot = hash & mask
    for (;;) {
      const entry = (this.slots[slot] as number) - 1
      if (entry < 0) break
      if (this.isEntry(entry, set, hash, state)) return 'known'
      slot = (slot + 1) & mask
    }
    if (this.size >= this.maxEntries) return 'full'
    this.append(set, hash, state)
    this.slots[slot] = this.size
    if (this.size > this.slots.length * FILL) this.growSlots()
    return 'new'
  }

  private isEntry(entry: number, set: Int32Array, hash: number, state: number): boolean {
    const at = entry * this.stride
    if (this.entries[at] !== hash || this.entries[at + 1] !== state) return false
    for (let i = 0; i < this.words; i++) if (this.entries[at + 2 + i] !== set[i]) return false
    return true
  }

  private append(set: Int32Array, hash: number, state: number): void {
    const at = this.size * this.stride
    if (at + this.stride > this.entries.length) {
      const grown = new Int32Array(Math.min(this.entries.length * 2, this.maxEntries * this.stride))
      grown.set(this.entries)
      this.entries = grown
    }
    this.entries[at] = hash
    this.entries[at + 1] = state
    this.entries.set(set, at + 2)
    this.size++
  }

  private growSlots(): void {
    this.slots = new Int32Array(this.slots.length * 2)
    const mask = this.slots.length - 1
    for (let entry = 0; entry < this.size; entry++) {
      let slot = (this.entries[entry * this.stride] as number) & mask
      while (this.slots[slot] !== 0) slot = (slot + 1) & mask
      this.slots[slot] = entry + 1
    }
  }
}
