import { type Process, Resource, World } from '../world/index.js'
import { type Finding, lateEffects, lostUpdates, markOrder, overlaps, tokenOrder } from './rules/index.js'
import { planFaults } from './plan-faults.js'
import type { Scenario } from './format.js'
import { HoldBook } from './hold-book.js'
import { Program, seconds } from './program.js'
import type { LockSystem } from './system.js'
import { systemOf } from './systems/index.js'

/** How long a system may take to become ready. */
const READY_US = 30_000_000
/** Second 0 is on a whole second after that, so that times in pictures are round. */
const ROUND_US = 1_000_000

/**
 * A scenario that is being played: its world stands right before second 0 and runs as far as the caller asks with
 * `world.run`. The caller may interfere; a run without interference is the one of {@link runScenario}, event for event.
 */
export class Play {
  readonly world: World
  readonly system: LockSystem
  readonly book: HoldBook
  readonly resources = new Map<string, Resource>()
  /** The process of each client; another one after a {@link Play.restart}. */
  readonly clients = new Map<string, Process>()
  /** Of clients that have begun. */
  readonly programs = new Map<string, Program>()
  /** Points of faults that no client has come to. */
  readonly missed: () => readonly string[]

  readonly #answerWaitUs: number | undefined

  constructor(
    readonly scenario: Scenario,
    world: World,
    system: LockSystem,
    /** When second 0 is. */
    readonly startUs: number,
    /** How long holds are looked at from outside. */
    lookUntilUs: number,
    answerWaitUs: number | undefined,
  ) {
    this.#answerWaitUs = answerWaitUs
    this.world = world
    this.system = system
    this.#makeResources()
    this.book = new HoldBook(world)
    for (const name of Object.keys(scenario.clients)) {
      this.clients.set(name, world.machine(name).spawn({ promises: true }))
    }
    for (const [name, process] of this.clients) {
      process.after(startUs - world.nowUs, () => this.#begin(name, process).run(scenario.clients[name] ?? []))
    }
    const context = { world, system, clients: this.clients, start: (who: string) => this.start(who) }
    this.missed = planFaults(context, scenario.faults ?? [], startUs)
    world.at(startUs, 'begin', () => this.book.lookUntil(lookUntilUs))
  }

  /** Microseconds of the world as seconds of the scenario. */
  at(us: number): number {
    return (us - this.startUs) / 1_000_000
  }

  /** Starts a member or a resource again. */
  start(who: string): void {
    const resource = this.resources.get(who)
    if (resource !== undefined) resource.start()
    else if (this.system.start !== undefined) this.system.start(who)
    else throw new Error(`${who} cannot be started again`)
  }

  /** Starts a client whose process has ended: with nothing in its memory, and no program yet. */
  restart(client: string): void {
    const { machine, alive } = this.clients.get(client) as Process
    if (alive) return
    if (!machine.on) machine.powerOn()
    const process = machine.spawn({ promises: true })
    this.clients.set(client, process)
    this.programs.delete(client)
    process.start(() => this.#begin(client, process))
  }

  /** What the checkers find, in the order of time. */
  findings(): Finding[] {
    const { world, system, book } = this
    const records = [...this.resources.values()].flatMap((resource) => resource.records)
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

  /** In the first turn of the client's process. */
  #begin(name: string, process: Process): { run(steps: Scenario['clients'][string]): void } {
    const { book, startUs, system, world } = this
    const resource = (given: string | undefined) => given ?? this.#onlyResource()
    const program = new Program({
      process,
      client: system.client(process),
      book,
      startUs,
      resource,
      ...(this.#answerWaitUs === undefined ? {} : { answerWaitUs: this.#answerWaitUs }),
    })
    this.programs.set(name, program)
    return {
      run: (steps) => {
        program.run(steps).catch((error: unknown) => {
          world.uncaught(process, error)
          process.kill()
        })
      },
    }
  }

  #makeResources(): void {
    const { verify } = this.system
    for (const [name, spec] of Object.entries(this.scenario.resources ?? {})) {
      const options = {
        ...spec,
        ...(spec.stall === undefined ? {} : { stallUs: seconds(spec.stall) }),
        ...(verify === undefined ? {} : { verify }),
      }
      this.resources.set(name, new Resource(this.world, name, options))
    }
  }

  #onlyResource(): string {
    const [name, ...more] = [...this.resources.keys()]
    if (name === undefined || more.length > 0) throw new Error('which resource? there is not exactly one')
    return name
  }
}

/**
 * Builds the world of a scenario and lets its system become ready. `endless`: holds are looked at for as long as the world
 * runs, not only until the scenario's end. `answerWait`: seconds for which clients wait for a resource.
 */
export async function openScenario(
  scenario: Scenario,
  options: { readonly seed: number; readonly endless?: boolean; readonly answerWait?: number },
): Promise<Play> {
  const world = new World({ seed: options.seed })
  const system = systemOf(world, scenario.system)
  await world.run(READY_US, () => system.ready?.() ?? true)
  const startUs = Math.ceil((world.nowUs + 1) / ROUND_US) * ROUND_US
  const lookUntilUs = options.endless === true ? Number.POSITIVE_INFINITY : startUs + seconds(scenario.until)
  return new Play(
    scenario,
    world,
    system,
    startUs,
    lookUntilUs,
    options.answerWait === undefined ? undefined : seconds(options.answerWait),
  )
}
