import type { Violation } from '../checkers/violation.js'
import { type Plan, planOf, type Profile } from './plan.js'
import { type Outcome, runPlan } from './run-plan.js'

export interface FuzzOptions {
  readonly from: number
  readonly to: number
  readonly profile: Profile
  /** Default: the seed draws 3 or 5. */
  readonly members?: number
  /** After each seed; false stops. */
  readonly progress?: (progress: Progress) => boolean | Promise<boolean>
}

export interface Progress {
  /** The next seed that would be run. */
  readonly next: number
  readonly seeds: number
  readonly simulatedMs: number
  readonly entries: number
  readonly undecided: number
  /** How often each fault and each kind of work came about: zeros are holes. */
  readonly faults: Readonly<Record<string, number>>
  readonly done: Readonly<Record<string, number>>
}

export interface Found {
  readonly plan: Plan
  readonly outcome: Outcome
}

export interface FuzzResult extends Progress {
  /** The first seed whose run broke an invariant; exploration ends there. */
  readonly found: Found | undefined
}

const NOTHING: Progress = { next: 0, seeds: 0, simulatedMs: 0, entries: 0, undecided: 0, faults: {}, done: {} }

/** Runs the seeds one after another, until one of them breaks an invariant. `before`: what an earlier call has done. */
export async function fuzz(options: FuzzOptions, before: Progress = NOTHING): Promise<FuzzResult> {
  const { from, to, profile, members } = options
  let sum: Progress = { ...before, next: Math.max(from, before.next) }
  for (let seed = sum.next; seed <= to; seed++) {
    const plan = planOf(seed, profile, members)
    const outcome = await runPlan(plan)
    sum = {
      next: seed + 1,
      seeds: sum.seeds + 1,
      simulatedMs: sum.simulatedMs + outcome.simulatedMs,
      entries: sum.entries + outcome.entries,
      undecided: sum.undecided + outcome.undecided,
      faults: added(sum.faults, outcome.faults),
      done: added(sum.done, outcome.done),
    }
    if (outcome.violations.length > 0) return { ...sum, found: { plan, outcome } }
    if ((await options.progress?.(sum)) === false) break
  }
  return { ...sum, found: undefined }
}

/** One violation, for people. */
export function violationText({ invariant, text, atMs }: Violation): string {
  return `${invariant} at ${(atMs / 1000).toFixed(3)} s: ${text}`
}

function added(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> {
  const sum: Record<string, number> = { ...a }
  for (const [key, value] of Object.entries(b)) sum[key] = (sum[key] ?? 0) + value
  return sum
}
