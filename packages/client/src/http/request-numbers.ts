/** The request numbers of a session that have no final answer yet. */
export class RequestNumbers {
  /** In ascending order. */
  readonly #open = new Set<number>()
  #next = 1

  take(): number {
    this.#open.add(this.#next)
    return this.#next++
  }

  close(number: number): void {
    this.#open.delete(number)
  }

  /** How far the next number is above the lowest open one. */
  get width(): number {
    for (const lowest of this.#open) return this.#next - lowest
    return 0
  }
}
