import type { ClientPlatform } from '../platform.js'

/** Listeners of one kind of event. The error of a listener is reported and never reaches the caller or other listeners. */
export class Emitter<T> {
  readonly #platform: ClientPlatform
  #listeners: ((value: T) => void)[] = []

  constructor(platform: ClientPlatform) {
    this.#platform = platform
  }

  get size(): number {
    return this.#listeners.length
  }

  add(listener: (value: T) => void): () => void {
    const own = (value: T) => listener(value)
    this.#listeners = [...this.#listeners, own]
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== own)
    }
  }

  emit(value: T): void {
    for (const listener of this.#listeners) {
      try {
        const result: unknown = listener(value)
        if (result instanceof Promise) result.catch((error: unknown) => this.#report(error))
      } catch (error) {
        this.#report(error)
      }
    }
  }

  clear(): void {
    this.#listeners = []
  }

  #report(error: unknown): void {
    this.#platform.report('leasehold: a listener has thrown', error)
  }
}
