import { InvalidError, parseToken } from '@leasehold/core'
import { SCENARIOS } from './testkit/scenarios.js'
import { type FencedResource, Finding, Stage } from './testkit/stage.js'

export { pausePoint, pausing } from './testkit/pauses.js'
export type { FencedResource } from './testkit/stage.js'

export interface ProofOptions {
  /** Receives one line per scenario. Default: the console. */
  readonly log?: (line: string) => void
  /** Name of the lock of all holds. Default: a new one per run. */
  readonly lock?: string
  /** The first token. Default 1; the resource must be fresh, because marks only grow. */
  readonly from?: bigint
  /** Seed of the pauses in the scenario `storm`. Default: a new one per run; a failure names it. */
  readonly seed?: number
}

export interface Proved {
  readonly id: string
  readonly title: string
  readonly outcome: 'holds' | 'fails' | 'skipped'
  /** Why it fails or was skipped. */
  readonly why?: string
}

/** The resource accepts writes that it must reject, or rejects valid ones. `scenarios` names them. */
export class FencingProofError extends InvalidError {
  static override readonly errorClass: string = 'FencingProofError'
  readonly scenarios: readonly Proved[]
  constructor(scenarios: readonly Proved[], cause: unknown) {
    const failed = scenarios.filter((one) => one.outcome === 'fails')
    super(`the resource is not fenced: ${failed.map((one) => `${one.id}: ${one.why}`).join('; ')}`, {
      code: 'mismatch',
      cause,
    })
    this.scenarios = scenarios
  }
}

/**
 * Runs the failures of the article "How to do distributed locking", and similar ones, against a resource of yours: late holders,
 * late packets, pauses at every point, wrong comparisons, restarts. Pauses are injected, not slept. Pass a fresh resource on the
 * real store, with the code of your application, and wrap its driver with {@link pausing}, so that it can be stopped between
 * its calls.
 *
 * It can find faults but not prove their absence. A guard is safe if its check and its effect are one atomic step.
 * @throws FencingProofError if a scenario fails
 * @example
 * const guard = fence(pausing(new Pool()))
 * await provesFencing({
 *   open: (hold) => guard.open(hold),
 *   read: (hold) => guard.with(hold, async (tx) => Number((await tx.query('SELECT n FROM t')).rows[0].n)),
 *   write: (hold, n) => guard.with(hold, (tx) => tx.query('UPDATE t SET n = $1', [n])),
 * })
 */
export async function provesFencing(resource: FencedResource, options: ProofOptions = {}): Promise<readonly Proved[]> {
  for (const name of ['open', 'read', 'write'] as const) {
    if (typeof resource?.[name] !== 'function') throw new InvalidError(`provesFencing needs ${name}(hold)`)
  }
  const seed = options.seed ?? Math.floor(Math.random() * 2 ** 32)
  const lock = options.lock ?? `testkit/${Date.now().toString(36)}-${seed.toString(36)}`
  const log = options.log ?? ((line: string) => console.log(line))
  const stage = new Stage(resource, lock, parseToken(options.from ?? 1n))
  const proved: Proved[] = []
  let cause: unknown
  for (const { id, title, skip, run } of SCENARIOS) {
    let one: Proved = { id, title, outcome: 'holds' }
    const reason = skip?.(stage)
    if (reason !== undefined) one = { id, title, outcome: 'skipped', why: reason }
    else {
      try {
        await run(stage, seed)
      } catch (error) {
        if (!(error instanceof Finding)) throw error
        cause ??= error
        one = { id, title, outcome: 'fails', why: error.message }
      }
    }
    proved.push(one)
    log(`${one.outcome.padEnd(7)} ${id.padEnd(8)} ${title}${one.why === undefined ? '' : ` (${one.why})`}`)
  }
  if (proved.some((one) => one.outcome === 'fails')) throw new FencingProofError(proved, cause)
  return proved
}
