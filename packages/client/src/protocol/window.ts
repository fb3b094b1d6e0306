import { type Ack, FreshSet } from '@leasehold/core'

const NOTHING: readonly number[] = []

/**
 * The request numbers of a session, and what the service may forget of them.
 * A number is *open* from `take` until `answered`. The service keeps its answer until it is told that it has arrived: by
 * the lowest open number, and one by one for those answered above it.
 */
export class RequestWindow {
  #next = 1
  #lowest = 1
  /** Answered, not below `#lowest`. */
  readonly #answered = new FreshSet<number>()
  /** Answered, and the service was not told on this connection. */
  readonly #news = new FreshSet<number>()
  #toldLowest = 1

  /** How far the next number is above the lowest open one. */
  get width(): number {
    return this.#next - this.#lowest
  }

  take(): number {
    return this.#next++
  }

  answered(request: number): void {
    if (request < this.#lowest || this.#answered.has(request)) return
    if (request !== this.#lowest) {
      this.#answered.add(request)
      this.#news.add(request)
      return
    }
    this.#lowest++
    while (this.#answered.delete(this.#lowest)) {
      this.#news.delete(this.#lowest)
      this.#lowest++
    }
  }

  get hasNews(): boolean {
    return this.#news.size > 0 || this.#toldLowest < this.#lowest
  }

  /** What the next command tells the service; counts as told. */
  tell(): Ack {
    const also = this.#news.size === 0 ? NOTHING : [...this.#news]
    if (also.length > 0) this.#news.clear()
    this.#toldLowest = this.#lowest
    return { lowest: this.#lowest, also }
  }

  /** The command that told `ack` may not have been applied. */
  untold(ack: Ack): void {
    for (const request of ack.also) if (request >= this.#lowest) this.#news.add(request)
    this.#toldLowest = Math.min(this.#toldLowest, ack.lowest - 1)
  }

  /** The connection is gone, and with it perhaps everything that was told on it. */
  forgetTold(): void {
    for (const request of this.#answered) this.#news.add(request)
    this.#toldLowest = 0
  }
}
