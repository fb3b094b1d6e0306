/** What a disk writes as one piece: a crash leaves a sector as it was, or as it was to become. */
export const SECTOR = 512
const SPARE_MAX = 8

/**
 * The content of a file: what readers see, and for every sector that was written since the last sync what is on the
 * platter still. A crash puts any of those sectors back.
 */
export class Inode {
  bytes: Uint8Array
  size: number
  /** Size that is on the platter. */
  #durableSize: number
  readonly #old = new Map<number, Uint8Array>()
  /**
   * What is on the platter of sectors that a failed sync has left readable, and clean for the system: no later sync writes
   * them, only a new write does. A crash takes them away.
   */
  readonly #lost = new Map<number, Uint8Array>()
  /** To be used again: there is one write and one sync after another. */
  readonly #spare: Uint8Array[] = []
  /** A bit of it has changed by itself. */
  rotten = false

  constructor(size: number) {
    this.bytes = new Uint8Array(size)
    this.size = size
    this.#durableSize = size
  }

  get dirty(): boolean {
    return this.#old.size > 0 || this.#lost.size > 0 || this.size !== this.#durableSize
  }

  /** A file of `size` zero bytes is being made: until it is synced, a crash may leave any part of it. */
  static growing(size: number): Inode {
    const inode = new Inode(size)
    inode.#durableSize = 0
    return inode
  }

  write(offset: number, chunk: Uint8Array): void {
    const end = offset + chunk.length
    if (end > this.size) this.#grow(end)
    for (let sector = Math.floor(offset / SECTOR); sector * SECTOR < end; sector++) this.#keep(sector)
    this.bytes.set(chunk, offset)
  }

  read(offset: number, length: number): Uint8Array {
    return this.bytes.slice(offset, Math.max(offset, Math.min(this.size, offset + length)))
  }

  /** Everything written so far is on the platter. */
  sync(): void {
    for (const before of this.#old.values()) {
      if (before.length === SECTOR && this.#spare.length < SPARE_MAX) this.#spare.push(before)
    }
    this.#old.clear()
    this.#durableSize = this.size
  }

  /** A crash: puts sectors back as they are on the platter, those for which `lost` says so. The others have reached it. */
  settle(lost: () => boolean): void {
    for (const [sector, before] of this.#lost) this.bytes.set(before, sector * SECTOR)
    this.#lost.clear()
    this.drop(lost, false)
  }

  /**
   * A failed sync: the system gives up the pages that it could not write, those for which `lost` says so. `readable`: what
   * was written can still be read, until a crash.
   */
  drop(lost: () => boolean, readable: boolean): void {
    if (this.size !== this.#durableSize && lost()) {
      this.bytes.fill(0, this.#durableSize, this.size)
      this.size = this.#durableSize
    }
    for (const [sector, before] of this.#old) {
      if (!lost()) continue
      if (readable) this.#lost.set(sector, before.slice())
      else this.bytes.set(before, sector * SECTOR)
    }
    this.sync()
  }

  /** Changes one bit on the platter, as rot does. */
  flip(bit: number): void {
    const at = Math.floor(bit / 8) % Math.max(1, this.size)
    this.bytes[at] = (this.bytes[at] as number) ^ (1 << (bit % 8))
    this.rotten = true
  }

  #keep(sector: number): void {
    if (this.#old.has(sector)) return
    const platter = this.#lost.get(sector)
    if (platter) {
      this.#lost.delete(sector)
      this.#old.set(sector, platter)
      return
    }
    const start = sector * SECTOR
    const end = Math.min(start + SECTOR, this.bytes.length)
    const before = end - start === SECTOR ? (this.#spare.pop() ?? new Uint8Array(SECTOR)) : new Uint8Array(end - start)
    before.set(this.bytes.subarray(start, end))
    this.#old.set(sector, before)
  }

  #grow(size: number): void {
    if (size > this.bytes.length) {
      const bytes = new Uint8Array(Math.max(size, this.bytes.length * 2))
      bytes.set(this.bytes)
      this.bytes = bytes
    }
    this.size = size
  }
}
