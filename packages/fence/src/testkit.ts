import { InvalidError, parseToken } from '@leasehold/core'
import { SCENARIOS } from './testkit/scenarios.js'
import { type FencedResource, Finding, Stage } from './testkit/stage.js'

export { pausePoint, pausing } from './testkit/pauses.js'
export type { FencedResource } from './testkit/stage.js'

export interface ProofOptions {
  /** Where a line per scenario goes. Default: the console. */
  readonly log?: (line: string) => void
  /** Name of the lock that the holds are of. Default: a new one for each run. */
  readonly lock?: string
  /** The first token. Default 1: the resource must be a fresh one, since marks only grow. */
  readonly from?: bigint
  /** For the pauses of the scenario `storm`. Default: another one for each run; a failure names it. */
  readonly seed?: number
}

export interface Proved {
  readonly id: string
  readonly title: string
  readonly outcome: 'holds' | 'fails' | 'skipped'
  /** Why it fails, or was skipped. */
  readonly why?: string
}

/** The resource does not refuse what it must refuse, or refuses what it must not. `scenarios` says which. */
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
 * Runs the failures of the article "How to do distributed locking" and their relatives against a resource of yours: late
 * holders, late packets, pauses at every point, wrong comparisons, restarts. Pauses are injected, not slept. Give it a fresh
 * resource on the real store, with the code that your application uses, and wrap its driver with {@link pausing}, so that
 * it can be stopped between its calls.
 *
 * It shows faults, and cannot show that there are none: a guard whose check and effect are one atomic step needs no luck.
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
