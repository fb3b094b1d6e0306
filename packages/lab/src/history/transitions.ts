import type { Model } from './model.js'
import type { Operation } from './operation.js'

const NONE: readonly number[] = []
/** Memoised steps are forgotten beyond this number; they can be computed again. */
const MAX_REMEMBERED_STEPS = 1 << 22

/**
 * The model's states and steps as small numbers: each distinct state is numbered once, operations with one description
 * share a kind, and each step of a kind from a state is computed once.
 */
export class Transitions {
  /** The kind of each operation, by its position. */
  readonly kinds: Int32Array
  readonly initial: number
  readonly #states: unknown[] = []
  readonly #numbers = new Map<string, number>()
  readonly #samples: Operation[] = []
  readonly #readOnly: readonly boolean[]
  readonly #steps = new Map<number, readonly number[]>()

  readonly #model: Model

  constructor(model: Model, operations: readonly Operation[]) {
    this.#model = model
    const byText = new Map<string, number>()
    this.kinds = Int32Array.from(operations, (operation) => {
      const text = model.describe(operation)
      const known = byText.get(text)
      if (known !== undefined) return known
      byText.set(text, this.#samples.length)
      return this.#samples.push(operation) - 1
    })
    this.#readOnly = this.#samples.map((operation) => model.isReadOnly(operation))
    this.initial = this.#numberOf(model.init(operations))
  }

  get kindCount(): number {
    return this.#samples.length
  }

  get stateCount(): number {
    return this.#states.length
  }

  /** The states that an operation of this kind may lead to. */
  next(state: number, kind: number): readonly number[] {
    const id = state * this.#samples.length + kind
    const known = this.#steps.get(id)
    if (known !== undefined) return known
    const reached = this.#model.step(this.#states[state], this.#samples[kind] as Operation)
    const numbers = reached.length === 0 ? NONE : reached.map((one) => this.#numberOf(one))
    if (this.#steps.size >= MAX_REMEMBERED_STEPS) this.#steps.clear()
    this.#steps.set(id, numbers)
    return numbers
  }

  /** Whether operations of this kind never change a state. */
  isReadOnly(kind: number): boolean {
    return this.#readOnly[kind] as boolean
  }

  text(state: number): string {
    return this.#model.stateText(this.#states[state])
  }

  #numberOf(state: unknown): number {
    const text = this.#model.stateText(state)
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.#states.length)
    return this.#states.push(state) - 1
  }
}
