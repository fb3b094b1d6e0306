import { Resource, type TimelineEvent, World } from '../world/index.js'
import type { Process } from '../world/index.js'
import { type Finding, lateEffects, lostUpdates, markOrder, overlaps, tokenOrder } from './checks/index.js'
import { differences } from './expect.js'
import { EXPLORED, runExplored } from './explored.js'
import { planFaults } from './faults.js'
import type { Expectation, Observation, Rule, Scenario, UnitOutcome } from './format.js'
import { HoldBook } from './holds.js'
import { Program, seconds } from './program.js'
import type { LockSystem } from './system.js'
import { systemOf } from './systems/index.js'

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

export interface ScenarioViolation {
  readonly rule: Rule
  readonly text: string
  /** Second of the scenario. */
  readonly at: number
  readonly who: readonly string[]
}

/** How long a system may take to become ready. */
const READY_US = 30_000_000
/** Second 0 is on a whole second after that, so that times in pictures are round. */
const ROUND_US = 1_000_000

/** Plays a scenario with the real code, and lets the checkers decide. Needs no machine: it runs in browsers as well. */
export async function runScenario(
  scenario: Scenario,
  options: { readonly seed?: number } = {},
): Promise<ScenarioResult> {
  if (scenario.system.kind === EXPLORED) return await runExplored(scenario)
  const seed = options.seed ?? 1
  const world = new World({ seed })
  const system = systemOf(world, scenario.system)
  await world.run(READY_US, () => system.ready?.() ?? true)
  const startUs = Math.ceil((world.nowUs + 1) / ROUND_US) * ROUND_US
  const resources = makeResources(world, system, scenario)
  const book = new HoldBook(world)
  const clients = new Map(Object.keys(scenario.clients).map((name) => [name, clientProcess(world, name)]))
  const programs = new Map<string, Program>()
  for (const [name, process] of clients) {
    process.after(startUs - world.nowUs, () => {
      const client = system.client(process)
      const resource = (given: string | undefined) => given ?? onlyOne(resources)
      const program = new Program({ process, client, book, startUs, resource })
      programs.set(name, program)
      program.run(scenario.clients[name] ?? []).catch((error: unknown) => {
        world.uncaught(process, error)
        process.kill()
      })
    })
  }
  const start = (who: string) => {
    const resource = resources.get(who)
    if (resource !== undefined) resource.start()
    else if (system.start !== undefined) system.start(who)
    else throw new Error(`${who} cannot be started again`)
  }
  const neverCameTo = planFaults({ world, system, clients, start }, scenario.faults ?? [], startUs)
  const untilUs = startUs + seconds(scenario.until)
  world.at(startUs, 'begin', () => book.lookUntil(untilUs))
  await world.run(untilUs)
  const findings = judge({ world, system, book, resources })
  const observed = observe({ world, system, book, resources, programs, clients, findings, startUs })
  const missed = neverCameTo().map((point) => `no client has come to the point: ${point}`)
  return resultOf({ scenario, seed, world, system, resources, findings, observed, startUs, missed })
}

interface Played {
  readonly world: World
  readonly system: LockSystem
  readonly book: HoldBook
  readonly resources: ReadonlyMap<string, Resource>
}

function makeResources(world: World, system: LockSystem, scenario: Scenario): Map<string, Resource> {
  const made = new Map<string, Resource>()
  for (const [name, spec] of Object.entries(scenario.resources ?? {})) {
    const { verify } = system
    const options = {
      ...spec,
      ...(spec.stall === undefined ? {} : { stallUs: seconds(spec.stall) }),
      ...(verify === undefined ? {} : { verify }),
    }
    made.set(name, new Resource(world, name, options))
  }
  return made
}

function clientProcess(world: World, name: string): Process {
  return world.machine(name).spawn({ promises: true })
}

function onlyOne(resources: ReadonlyMap<string, Resource>): string {
  const [name, ...more] = [...resources.keys()]
  if (name === undefined || more.length > 0) throw new Error('which resource? there is not exactly one')
  return name
}

/** What the checkers find, in the order of time. */
function judge({ world, system, book, resources }: Played): Finding[] {
  const records = [...resources.values()].flatMap((resource) => resource.records)
  const found: Finding[] = [
    ...(system.overlapViolates ? overlaps(book) : []),
    ...lostUpdates(records),
    ...tokenOrder(book.records),
    ...markOrder(records),
    ...lateEffects(records, book.records),
    ...(system.violations?.() ?? []).map((one) => ({ ...one, who: [] })),
    ...world.uncaughtErrors.map(({ atUs, process, error }) => ({
      rule: 'exception' as const,
      text: `${process}: ${error instanceof Error ? error.message : String(error)}`,
      atUs,
      who: [process],
    })),
  ]
  return found.sort((a, b) => a.atUs - b.atUs)
}

function observe(
  played: Played & {
    readonly programs: ReadonlyMap<string, Program>
    readonly clients: ReadonlyMap<string, Process>
    readonly findings: readonly Finding[]
    readonly startUs: number
  },
): Observation {
  const { book, clients, findings, programs, resources, startUs, system } = played
  const units = [...clients.keys()].map((name): [string, UnitOutcome] => [
    name,
    programs.get(name)?.outcome ?? 'unfinished',
  ])
  const grants = [...clients.keys()].map((name): [string, number[]] => {
    const own = book.records.filter((record) => record.client === name)
    return [name, own.map((record) => (record.grantedUs - startUs) / 1_000_000)]
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

function resultOf(
  given: Omit<Played, 'book'> & {
    readonly scenario: Scenario
    readonly seed: number
    readonly findings: readonly Finding[]
    readonly observed: Observation
    readonly startUs: number
    /** Points of faults that were never reached. */
    readonly missed: readonly string[]
  },
): ScenarioResult {
  const { scenario, seed, world, system, resources, findings, observed, startUs, missed } = given
  const at = (us: number) => (us - startUs) / 1_000_000
  const violations = findings.map(({ rule, text, atUs, who }) => ({ rule, text, who, at: at(atUs) }))
  const marked = findings.map(({ rule, text, atUs, who }) => ({ kind: 'violation' as const, rule, text, who, atUs }))
  const timeline = [...world.timeline.events, ...marked].sort((a, b) => a.atUs - b.atUs)
  const found = [...differences(scenario.expect, observed), ...missed]
  return {
    scenario: scenario.id,
    title: scenario.title,
    text: scenario.text ?? '',
    reference: scenario.reference,
    seed,
    ok: found.length === 0,
    expected: scenario.expect,
    observed,
    differences: found,
    violations,
    timeline: timeline.map((event) => ({ at: at(event.atUs), ...event })),
    lanes: { clients: Object.keys(scenario.clients), members: system.members, resources: [...resources.keys()] },
    until: scenario.until,
    traceHash: world.trace.digest,
  }
}
