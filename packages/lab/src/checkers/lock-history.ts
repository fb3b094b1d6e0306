import type { Hold } from '@leasehold/client'
import { checkHistory, type CheckResult } from '../history/check.js'
import { modelNamed, type ModelName } from '../history/models/index.js'
import type { Operation } from '../history/operation.js'

type Draft = { -readonly [K in keyof Operation]: Operation[K] }

/** Placements that are tried for one lock; a number, so that the verdict is the same on every machine. */
const STEPS_MAX = 400_000

/**
 * What clients have seen of locks and registers, as operations that can be judged. Times are places in the order of the
 * calls to this recorder.
 */
export class LockHistory {
  readonly operations: Operation[] = []
  #clock = 0

  /** An acquire is sent. */
  acquire(process: string, key: string, more: Partial<Operation> = {}): AcquireRecord {
    const operation: Draft = { process, op: 'acquire', key, outcome: 'unknown', invokedAt: ++this.#clock, ...more }
    this.operations.push(operation)
    return new AcquireRecord(operation, () => ++this.#clock, this.operations)
  }

  /** A call on a register. */
  call(process: string, op: 'read' | 'cas', key: string, value?: Operation['value']): CallRecord {
    const operation: Draft = { process, op, key, outcome: 'unknown', invokedAt: ++this.#clock, value }
    this.operations.push(operation)
    return {
      ok: (result) => {
        operation.outcome = 'ok'
        operation.returnedAt = ++this.#clock
        operation.result = result
      },
      fail: () => {
        operation.outcome = 'fail'
      },
    }
  }

  /** Judges what there is of a kind. */
  judge(model: ModelName, keys: (key: string) => boolean, permits?: number): CheckResult | undefined {
    const chosen = this.operations.filter((operation) => keys(operation.key)).map(withoutSharedTokens)
    if (chosen.length === 0) return undefined
    return checkHistory(modelNamed(model, permits === undefined ? {} : { permits }), chosen, { maxSteps: STEPS_MAX })
  }
}

/**
 * Tokens of shared holds are not judged here: a hold that no client has heard of, of a session that was abandoned in the middle
 * of an acquire, may keep a generation alive. The checks of the events see all holds, and judge their tokens.
 */
function withoutSharedTokens(operation: Operation): Operation {
  return operation.mode === undefined ? operation : { ...operation, token: undefined }
}

export interface CallRecord {
  ok(result?: Operation['result']): void
  fail(): void
}

/** An acquire and the end of what it got. Without an end, the hold may end at any time after the grant. */
export class AcquireRecord {
  #end: Draft | undefined

  readonly #operation: Draft
  readonly #tick: () => number
  readonly #operations: Operation[]

  constructor(operation: Draft, tick: () => number, operations: Operation[]) {
    this.#operation = operation
    this.#tick = tick
    this.#operations = operations
  }

  /** It has the lock. */
  granted(hold: Hold, name: string): void {
    const lock = hold.locks.find((one) => one.name === name)
    const owner = `${this.#operation.process}/${hold.id}`
    Object.assign(this.#operation, { outcome: 'ok', returnedAt: this.#tick(), owner, token: lock?.token })
    if (lock?.slot !== undefined) this.#operation.slot = lock.slot
    const { process, key, mode, permits, slot, token } = this.#operation
    // Its session may have ended before the answer was here: a paused client hears of its grant late.
    const invokedAt = this.#operation.invokedAt + 0.5
    this.#end = {
      process,
      op: 'release',
      key,
      outcome: 'unknown',
      invokedAt,
      owner,
      mode,
      permits,
      slot,
      token,
    }
    this.#operations.push(this.#end)
  }

  /** It certainly has not got it. */
  failed(): void {
    this.#operation.outcome = 'fail'
  }

  /** The release is sent. */
  releasing(): void {
    this.#releaseAt = this.#tick()
  }

  #releaseAt = 0

  /** The service has confirmed the release. */
  released(): void {
    if (!this.#end) return
    this.#end.outcome = 'ok'
    this.#end.invokedAt = this.#releaseAt
    this.#end.returnedAt = this.#tick()
  }
}
