/** The bytes that one connection has sent before it was authenticated. */
export interface PreauthShare {
  /** Counts received bytes. */
  add(bytes: number): void
  /** Stops counting: the connection was authenticated or closed. Idempotent. */
  end(): void
}

interface Holder {
  bytes: number
  readonly cut: () => void
}

/**
 * Limits the bytes that unauthenticated connections, all together, can make this process buffer. Above the limit, the
 * connection that has sent the most is cut, so that clients that send little can connect during an attack.
 */
export class PreauthBuffer {
  readonly #max: number
  readonly #holders = new Set<Holder>()
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  open(cut: () => void): PreauthShare {
    const holder: Holder = { bytes: 0, cut }
    this.#holders.add(holder)
    return {
      add: (bytes) => {
        if (!this.#holders.has(holder)) return
        holder.bytes += bytes
        this.#total += bytes
        while (this.#total > this.#max) this.#cutLargest()
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
