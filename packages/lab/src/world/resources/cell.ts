import type { Machine } from '../machine.js'

/**
 * A value on the disk of a machine, with what a process believes to be there. `commit` makes the present value durable; a
 * process that ends before loses what it has only set.
 */
export class DurableCell<T> {
  #durable: T
  #value: T

  constructor(machine: Machine, initial: T) {
    this.#durable = initial
    this.#value = initial
    machine.onPowerOff(() => this.lose())
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    this.#value = value
  }

  commit(): void {
    this.#durable = this.#value
  }

  /** Back to what is durable. */
  lose(): void {
    this.#value = this.#durable
  }
}
