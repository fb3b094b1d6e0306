/** Correlation numbers of messages that await one answer each. A number is free again after its answer. */
export class Correlations<T> {
  /** At the number − 1. */
  #slots: (T | undefined)[] = []
  #free: number[] = []

  get size(): number {
    return this.#slots.length - this.#free.length
  }

  /** @returns a number above 0 */
  add(value: T): number {
    const number = this.#free.pop()
    if (number === undefined) return this.#slots.push(value)
    this.#slots[number - 1] = value
    return number
  }

  /** Returns the value of a number and frees it. */
  take(number: number): T | undefined {
    const value = this.#slots[number - 1]
    if (value === undefined) return undefined
    this.#slots[number - 1] = undefined
    this.#free.push(number)
    return value
  }

  clear(): void {
    this.#slots = []
    this.#free = []
  }
}
