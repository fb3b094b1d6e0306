/** Slow requests are sent less often, so that the console never causes much load on a service. */
const SHARE = 4
const SHARE_MOST_MS = 1_000

/** Runs a poll repeatedly. Each poll returns the delay before the next one; `wake` runs the next one immediately. */
export class Poller {
  readonly #poll: () => Promise<number>
  readonly #spacingMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #running = false
  #again = false
  /** The earliest time of the next poll. */
  #earliest = 0

  /** @param spacingMs the minimal time between the starts of two polls */
  constructor(poll: () => Promise<number>, spacingMs: number) {
    this.#poll = poll
    this.#spacingMs = spacingMs
  }

  wake(): void {
    if (this.#running) {
      this.#again = true
      return
    }
    this.#schedule(Math.max(0, this.#earliest - performance.now()))
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#run(), delayMs)
  }

  async #run(): Promise<void> {
    this.#running = true
    const start = performance.now()
    const waitMs = await this.#poll()
    this.#running = false
    const share = Math.min((performance.now() - start) * SHARE, SHARE_MOST_MS)
    this.#earliest = start + Math.max(this.#spacingMs, share)
    const again = this.#again
    this.#again = false
    this.#schedule(Math.max(again ? 0 : waitMs, this.#earliest - performance.now()))
  }
}
