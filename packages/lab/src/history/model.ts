import type { Operation } from './operation.js'
import type { Value } from './value.js'

/** Settings of a model that a history may leave open. */
export interface ModelOptions {
  /** Value of a register before the first write; nil unless given. */
  readonly initial?: Value | undefined
  /** Size of a semaphore whose history does not say it. */
  readonly permits?: number | undefined
}

/**
 * A sequential specification: what one object may answer when operations come one after the other.
 * States are immutable. A model is free of side effects and keeps nothing between calls.
 */
export interface Model<State = unknown> {
  readonly name: string
  /** Names of operations that it knows, each with the name that {@link step} sees. */
  readonly operations: Readonly<Record<string, string>>
  /** The object that an operation is about; the objects of a history are judged one by one. */
  partition(operation: Operation): string
  /**
   * The state before the first of these operations, all of one partition.
   * @throws HistoryError if the model cannot judge them
   */
  init(operations: readonly Operation[]): State
  /**
   * All states that the operation may lead to; none if it is impossible here.
   * An `unknown` operation is only stepped for the case that it did happen.
   */
  step(state: State, operation: Operation): readonly State[]
  /** Text of a state; equal exactly for equal states. */
  stateText(state: State): string
  /** Text of an operation with all that {@link step} looks at: operations with one text are interchangeable. */
  describe(operation: Operation): string
  /** Whether the operation leaves every state in which it is possible as it is. */
  isReadOnly(operation: Operation): boolean
  /**
   * Operations of one partition without those of unknown outcome that no order needs: any order that has them also works
   * without them. Saves the search from trying them. Without this method all count.
   */
  relevant?(operations: readonly Operation[]): readonly Operation[]
  /** What is missing or wrong in this single operation, or undefined. */
  problem(operation: Operation): string | undefined
}
