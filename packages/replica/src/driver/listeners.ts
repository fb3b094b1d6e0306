import type { Logger } from '../platform.js'

/** Listeners of one kind. An error in one of them is logged, and stops neither the others nor the member. */
export class Listeners<Arguments extends readonly unknown[]> {
  readonly #log: Logger
  readonly #all = new Set<(...args: Arguments) => void>()

  constructor(log: Logger) {
    this.#log = log
  }

  add(listener: (...args: Arguments) => void): () => void {
    const own = (...args: Arguments): void => listener(...args)
    this.#all.add(own)
    return () => this.#all.delete(own)
  }

  call(...args: Arguments): void {
    for (const listener of this.#all) {
      try {
        listener(...args)
      } catch (error) {
        logFailure(this.#log, error)
      }
    }
  }
}

/** Runs a callback of the caller, and logs its error. */
export function runGuarded(log: Logger, action: () => void): void {
  try {
    action()
  } catch (error) {
    logFailure(log, error)
  }
}

function logFailure(log: Logger, error: unknown): void {
  log.error('a callback failed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
}
