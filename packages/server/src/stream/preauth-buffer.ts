/** What one connection has sent before anybody knows who it is. */
export interface PreauthShare {
  /** So many bytes more have come. */
  took(bytes: number): void
  /** It is known, or gone. Any number of times. */
  end(): void
}

interface Holder {
  bytes: number
  readonly cut: () => void
}

/**
 * Bytes that strangers make this process keep: all connections together have a bound. Beyond it the one that has sent most is
 * cut, so that whoever sends little is let in also while others hoard.
 */
export class PreauthBuffer {
  readonly #holders = new Set<Holder>()
  #total = 0

  constructor(private readonly max: number) {}

  open(cut: () => void): PreauthShare {
    const holder: Holder = { bytes: 0, cut }
    this.#holders.add(holder)
    return {
      took: (bytes) => {
        if (!this.#holders.has(holder)) return
        holder.bytes += bytes
        this.#total += bytes
        while (this.#total > this.max) this.#cutLargest()
      },
      end: () => this.#end(holder),
    }
  }

  #end(holder: Holder): void {
    if (this.#holders.delete(holder)) this.#total -= holder.bytes
  }

  #cutLargest(): void {
    let largest: Holder | undefined
    for (const holder of this.#holders) if (largest === undefined || holder.bytes > largest.bytes) largest = holder
    if (largest === undefined) return
    this.#end(largest)
    largest.cut()
  }
}
