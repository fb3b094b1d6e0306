import { violationText } from './fuzz.js'
import type { Plan } from './plan.js'
import type { Outcome } from './run-plan.js'

/** A plan as a scenario file: it expects that nothing is broken, so it fails as long as the bug is there. */
export function scenarioOfPlan(plan: Plan, outcome: Outcome): Record<string, unknown> {
  const [first] = outcome.violations
  return {
    id: `explored-${plan.profile}-${plan.seed}`,
    title: first ? `${first.invariant}, found by exploring` : 'a run of the explorer',
    reference: `seed ${plan.seed}, profile ${plan.profile}`,
    ...(first ? { text: violationText(first) } : {}),
    system: { kind: 'explored', plan },
    clients: {},
    until: Math.ceil(outcome.simulatedMs / 1000),
    expect: { violations: [] },
  }
}
