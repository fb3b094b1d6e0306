import type { Value } from './value.js'

/** Whether locks are taken alone or together with other shared holders. */
export type HoldMode = 'exclusive' | 'shared'

/**
 * One operation of a history.
 *
 * `ok` happened once between its two points of time. `fail` did not happen and is left out. `unknown` may have happened
 * at any time after its invocation, or never: its answer was lost.
 */
export interface Operation {
  /** The calling process. One process has one open operation at a time, unless events carry ids. */
  readonly process: string
  /** `read`, `write`, `cas`, `acquire`, `release`, `get`, `put`, `append`, `txn`. */
  readonly op: string
  /** The lock or register that it is about; histories of one object leave it empty. */
  readonly key: string
  readonly outcome: 'ok' | 'fail' | 'unknown'
  /** In any unit of time, or a plain position: only the order counts. Equal times count as overlapping. */
  readonly invokedAt: number
  /** Needed for `ok`, ignored for `unknown`. */
  readonly returnedAt?: number | undefined
  /** What was asked: the value of a write, `[from, to]` of a cas, the appended text, the steps of a transaction. */
  readonly value?: Value | undefined
  /** What was answered: the value of a read; `false` for a cas that found another value. */
  readonly result?: Value | undefined
  /** The holder, when that is not the process: a session, or a hold of its own. */
  readonly owner?: string | undefined
  readonly mode?: HoldMode | undefined
  readonly token?: bigint | undefined
  readonly slot?: number | undefined
  /** Size of the semaphore that an acquire or release is about. */
  readonly permits?: number | undefined
  /** Where it was read: the line of its invocation. */
  readonly line?: number | undefined
}

/** The owner that a lock model sees; a name with spaces is quoted, so that texts made of it stay unambiguous. */
export function ownerOf(operation: Operation): string {
  const owner = operation.owner ?? operation.process
  return /^[^\s"]+$/.test(owner) ? owner : JSON.stringify(owner)
}
