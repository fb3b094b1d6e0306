/** Does something again and again. Each turn says how long to wait for the next one; `wake` cuts the wait short. */
export class Loop {
  #timer: ReturnType<typeof setTimeout> | undefined
  #running = false
  #again = false
  #startedAt = 0

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
    this.#in(Math.max(0, this.#startedAt + this.spacingMs - performance.now()))
  }

  #in(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#run(), delayMs)
  }

  async #run(): Promise<void> {
    this.#running = true
    this.#startedAt = performance.now()
    const waitMs = await this.turn()
    this.#running = false
    const again = this.#again
    this.#again = false
    this.#in(Math.max(again ? 0 : waitMs, this.#startedAt + this.spacingMs - performance.now()))
  }
}
