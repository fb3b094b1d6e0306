/** What takes long is done less often: the console is never much of the work of a service. */
const SHARE = 4
const SHARE_MOST_MS = 1_000

/** Does something again and again. Each turn says how long to wait for the next one; `wake` cuts the wait short. */
export class Loop {
  #timer: ReturnType<typeof setTimeout> | undefined
  #running = false
  #again = false
  /** No turn begins before. */
  #earliest = 0

  /** @param spacingMs turns never begin closer to each other than this */
  constructor(
    private readonly turn: () => Promise<number>,
    private readonly spacingMs: number,
  ) {}

  wake(): void {
    if (this.#running) {
      this.#again = true
      return
    }
    this.#in(Math.max(0, this.#earliest - performance.now()))
  }

  #in(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#run(), delayMs)
  }

  async #run(): Promise<void> {
    this.#running = true
    const start = performance.now()
    const waitMs = await this.turn()
    this.#running = false
    const share = Math.min((performance.now() - start) * SHARE, SHARE_MOST_MS)
    this.#earliest = start + Math.max(this.spacingMs, share)
    const again = this.#again
    this.#again = false
    this.#in(Math.max(again ? 0 : waitMs, this.#earliest - performance.now()))
  }
}
