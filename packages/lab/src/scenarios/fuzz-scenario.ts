import { type Plan, runPlan, violationText } from '../fuzz/index.js'
import type { TimelineEvent } from '../world/index.js'
import { differences } from './expect.js'
import type { Observation, Scenario } from './format.js'
import type { ScenarioResult } from './scenario-result.js'

/** The kind of a system that is a plan of the explorer: members, clients and faults come with it, and so does the seed. */
export const EXPLORED = 'explored'

/** Plays a plan that the explorer has written down. */
export async function runFuzzScenario(scenario: Scenario): Promise<ScenarioResult> {
  const plan = scenario.system.plan as Plan
  const timeline: TimelineEvent[] = []
  const outcome = await runPlan(plan, { happened: (event) => timeline.push(event) })
  const violations = outcome.violations.map((violation) => ({
    rule: 'invariant' as const,
    text: violationText(violation),
    at: violation.atMs / 1000,
    who: [],
  }))
  const observed: Observation = {
    violations: violations.length > 0 ? ['invariant'] : [],
    units: {},
    values: {},
    grants: {},
    beliefOverlapMs: 0,
    approximate: false,
    faults: outcome.faults,
    done: outcome.done,
    errors: outcome.errors,
  }
  const found = differences(scenario.expect, observed)
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`)
  return {
    scenario: scenario.id,
    title: scenario.title,
    text: scenario.text ?? '',
    reference: scenario.reference,
    seed: plan.seed,
    ok: found.length === 0,
    expected: scenario.expect,
    observed,
    differences: found,
    violations,
    timeline: timeline.map((event) => ({ at: event.atUs / 1_000_000, ...event })),
    lanes: { clients: names('C', plan.clients), members: names('N', plan.members), resources: [] },
    until: outcome.simulatedMs / 1000,
    traceHash: outcome.traceHash,
  }
}
