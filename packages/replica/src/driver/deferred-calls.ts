import type { Logger } from '../platform.js'
import { runGuarded } from './listeners.js'

/** Callbacks that run after the present call, in order. A callback that throws is logged. */
export class DeferredCalls {
  readonly #log: Logger
  #calls: (() => void)[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  add(call: () => void): void {
    this.#calls.push(call)
  }

  /** Runs what was added so far. Calls that are added meanwhile wait for the next time. */
  run(): void {
    const calls = this.#calls
    if (calls.length === 0) return
    this.#calls = []
    for (const call of calls) runGuarded(this.#log, call)
  }
}
