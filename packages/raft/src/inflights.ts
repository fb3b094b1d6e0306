import type { Index } from './types.js'

/** Appends that were sent and not acknowledged: a first-in first-out list of (last index, bytes), bounded by both. */
export class Inflights {
  private readonly items: { readonly index: Index; readonly bytes: number }[] = []
  private start = 0
  private bytes = 0

  constructor(
    private readonly countMax: number,
    /** 0: no bound. */
    private readonly bytesMax: number,
  ) {}

  get count(): number {
    return this.items.length - this.start
  }

  get full(): boolean {
    return this.count >= this.countMax || (this.bytesMax > 0 && this.bytes >= this.bytesMax)
  }

  add(index: Index, bytes: number): void {
    this.items.push({ index, bytes })
    this.bytes += bytes
  }

  /** Everything up to `index` has arrived. */
  freeUpTo(index: Index): void {
    for (;;) {
      const item = this.items[this.start]
      if (item === undefined || item.index > index) break
      this.bytes -= item.bytes
      this.start++
    }
    if (this.start > 32 && this.start * 2 > this.items.length) {
      this.items.splice(0, this.start)
      this.start = 0
    }
  }

  reset(): void {
    this.items.length = 0
    this.start = 0
    this.bytes = 0
  }
}
