import type { InvariantId } from '../checkers/violation.js'
import { type DrawnFault, FAMILIES, type Family, familyOf } from './drawn-fault.js'
import { type Plan, type Work, WORKS } from './plan.js'
import type { Outcome } from './run-plan.js'

export interface ShrinkOptions {
  readonly run: (plan: Plan) => Promise<Outcome>
  /** Runs that may be spent. */
  readonly runsMax: number
  readonly progress?: (text: string) => void
}

/** What is left of a plan whose run breaks an invariant. */
export interface Shrunk {
  readonly plan: Plan
  readonly outcome: Outcome
  readonly runs: number
}

/**
 * Makes a failing plan smaller, as long as the same invariant is broken: the run is cut off after it, whole families of
 * faults go, then clients and kinds of work, then single faults (delta debugging), then their durations.
 */
export async function shrink(plan: Plan, outcome: Outcome, options: ShrinkOptions): Promise<Shrunk> {
  const invariant = outcome.violations[0]?.invariant
  if (invariant === undefined) throw new Error('there is nothing to shrink: the run broke no invariant')
  const shrinker = new Shrinker(plan, outcome, invariant, options)
  await shrinker.run()
  return shrinker
}

class Shrinker implements Shrunk {
  runs = 0

  readonly #invariant: InvariantId
  readonly #options: ShrinkOptions

  constructor(
    public plan: Plan,
    public outcome: Outcome,
    invariant: InvariantId,
    options: ShrinkOptions,
  ) {
    this.#invariant = invariant
    this.#options = options
  }

  async run(): Promise<void> {
    await this.#cutOff()
    for (const family of Object.keys(FAMILIES) as Family[]) await this.#without(family)
    for (let clients = 1; clients < this.plan.clients; clients++)
      if (await this.#tryPlan({ ...this.plan, clients })) break
    for (const work of WORKS) await this.#withoutWork(work)
    for (let locks = 1; locks < this.plan.locks; locks++) if (await this.#tryPlan({ ...this.plan, locks })) break
    if (this.plan.observers) await this.#tryPlan({ ...this.plan, observers: 0 })
    if (this.plan.dataBytes) await this.#tryPlan({ ...this.plan, dataBytes: 0 })
    await this.#tryPlan({ ...this.plan, drift: {} })
    await this.#dropFaults()
    await this.#shorten()
    await this.#cutOff()
  }

  /** Nothing after the violation matters, if it came before the end. */
  async #cutOff(): Promise<void> {
    const atMs = this.outcome.violations[0]?.atMs ?? 0
    const safetyMs = Math.ceil(atMs) + 1
    if (safetyMs >= this.plan.safetyMs) return
    await this.#tryPlan({ ...this.plan, safetyMs, faults: this.plan.faults.filter((fault) => fault.atMs <= safetyMs) })
  }

  async #without(family: Family): Promise<void> {
    const faults = this.plan.faults.filter((fault) => familyOf(fault.kind) !== family)
    if (faults.length < this.plan.faults.length) await this.#tryPlan({ ...this.plan, faults })
  }

  async #withoutWork(work: Work): Promise<void> {
    if (this.plan.work[work] > 0) await this.#tryPlan({ ...this.plan, work: { ...this.plan.work, [work]: 0 } })
  }

  /** Delta debugging (Zeller): ever smaller pieces of the list are left out. */
  async #dropFaults(): Promise<void> {
    for (let pieces = 2; this.plan.faults.length > 0; ) {
      const { faults } = this.plan
      const size = Math.ceil(faults.length / pieces)
      let dropped = false
      for (let from = 0; from < faults.length && !dropped; from += size) {
        const rest = [...faults.slice(0, from), ...faults.slice(from + size)]
        dropped = await this.#tryPlan({ ...this.plan, faults: rest })
      }
      if (dropped) pieces = Math.max(2, pieces - 1)
      else if (size <= 1 || this.#spent) return
      else pieces = Math.min(faults.length, pieces * 2)
    }
  }

  async #shorten(): Promise<void> {
    for (let i = 0; i < this.plan.faults.length; i++) {
      const fault = this.plan.faults[i] as DrawnFault
      if (fault.forMs < 200) continue
      const faults = this.plan.faults.with(i, { ...fault, forMs: Math.ceil(fault.forMs / 4) })
      await this.#tryPlan({ ...this.plan, faults })
    }
  }

  get #spent(): boolean {
    return this.runs >= this.#options.runsMax
  }

  /** Takes the smaller plan if it breaks the same invariant. */
  async #tryPlan(plan: Plan): Promise<boolean> {
    if (this.#spent) return false
    this.runs++
    const outcome = await this.#options.run(plan)
    const same = outcome.violations[0]?.invariant === this.#invariant
    this.#options.progress?.(
      `${this.runs}: ${plan.faults.length} faults, ${plan.clients} clients: ${same ? 'still' : 'gone'}`,
    )
    if (!same) return false
    this.plan = plan
    this.outcome = outcome
    return true
  }
}
