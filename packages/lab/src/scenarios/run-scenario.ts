import type { Finding } from './rules/index.js'
import { differences } from './expect.js'
import { EXPLORED, runFuzzScenario } from './fuzz-scenario.js'
import type { Observation, Scenario, UnitOutcome } from './format.js'
import { openScenario, type Play } from './play.js'
import { seconds } from './program.js'
import type { ScenarioResult } from './scenario-result.js'

/** Plays a scenario with the real code, and lets the checkers decide. Needs no machine: it runs in browsers as well. */
export async function runScenario(
  scenario: Scenario,
  options: { readonly seed?: number } = {},
): Promise<ScenarioResult> {
  if (scenario.system.kind === EXPLORED) return await runFuzzScenario(scenario)
  const play = await openScenario(scenario, { seed: options.seed ?? 1 })
  await play.world.run(play.startUs + seconds(scenario.until))
  return resultOf(play)
}

function observe(play: Play, findings: readonly Finding[]): Observation {
  const { book, clients, programs, resources, startUs, system } = play
  const units = [...clients.keys()].map((name): [string, UnitOutcome] => [
    name,
    programs.get(name)?.outcome ?? 'unfinished',
  ])
  const grants = [...clients.keys()].map((name): [string, number[]] => {
    const own = book.records.filter((record) => record.client === name)
    return [name, own.map((record) => play.at(record.grantedUs))]
  })
  return {
    violations: [...new Set(findings.map(({ rule }) => rule))].sort(),
    units: Object.fromEntries(units),
    values: Object.fromEntries([...resources].map(([name, resource]) => [name, resource.value])),
    grants: Object.fromEntries(grants),
    beliefOverlapMs: Math.round(book.overlapUs / 1000),
    approximate: system.approximate === true,
    ...system.facts?.(startUs),
  }
}

/** How a play that has come to its end came out. */
export function resultOf(play: Play): ScenarioResult {
  const { resources, scenario, system, world } = play
  const findings = play.findings()
  const observed = observe(play, findings)
  const violations = findings.map(({ rule, text, atUs, who }) => ({ rule, text, who, at: play.at(atUs) }))
  const marked = findings.map(({ rule, text, atUs, who }) => ({ kind: 'violation' as const, rule, text, who, atUs }))
  const timeline = [...world.timeline.events, ...marked].sort((a, b) => a.atUs - b.atUs)
  const missed = play.missed().map((point) => `no client has come to the point: ${point}`)
  const found = [...differences(scenario.expect, observed), ...missed]
  return {
    scenario: scenario.id,
    title: scenario.title,
    text: scenario.text ?? '',
    reference: scenario.reference,
    // As it was given: the world takes 32 bits with a sign.
    seed: world.seed >>> 0,
    ok: found.length === 0,
    expected: scenario.expect,
    observed,
    differences: found,
    violations,
    timeline: timeline.map((event) => ({ at: play.at(event.atUs), ...event })),
    lanes: { clients: Object.keys(scenario.clients), members: system.members, resources: [...resources.keys()] },
    until: scenario.until,
    traceHash: world.trace.digest,
  }
}
