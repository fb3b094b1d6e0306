import type { TimelineEvent } from '../world/index.js'
import type { Expectation, Observation, Rule } from './format.js'

/** How a scenario ended, with everything that pictures need. */
export interface ScenarioResult {
  readonly scenario: string
  readonly title: string
  readonly text: string
  readonly reference: string
  readonly seed: number
  /** The scenario ended as its definition expects. */
  readonly ok: boolean
  readonly expected: Expectation
  readonly observed: Observation
  /** Where the two differ, for people; empty when `ok`. */
  readonly differences: readonly string[]
  readonly violations: readonly ScenarioViolation[]
  /** Times in seconds of the scenario; the service becomes ready before second 0. */
  readonly timeline: readonly (TimelineEvent & { readonly at: number })[]
  /** Lanes for pictures, top to bottom. */
  readonly lanes: {
    readonly clients: readonly string[]
    readonly members: readonly string[]
    readonly resources: readonly string[]
  }
  readonly until: number
  readonly traceHash: string
}

/** A broken rule. */
export interface ScenarioViolation {
  readonly rule: Rule
  readonly text: string
  /** Second of the scenario. */
  readonly at: number
  readonly who: readonly string[]
}
