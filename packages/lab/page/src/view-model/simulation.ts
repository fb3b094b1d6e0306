import { openScenario, type Play, resultOf, type ScenarioResult } from '@leasehold/lab/scenarios/index'
import type { Action, TimedAction } from './actions.js'
import { Flights } from './flights.js'
import { FaultInjector } from './fault-injector.js'
import { Journal } from './journal.js'
import { ViewModelBuilder, type ViewModel } from './view-model.js'
import type { Scene } from './scenes.js'

const US = 1_000_000
/** Simulated seconds for which clients of a free world wait for a resource. */
const FREE_ANSWER_WAIT = 12
/** Deeds that are kept for the address. */
const ACTIONS_MAX = 500

export interface SimulationOptions {
  readonly scene: Scene
  readonly seed: number
  /** What is to be done again, as it was done before. */
  readonly actions?: readonly TimedAction[]
  /** The clock of the picture, in milliseconds; stands still while the world does. */
  readonly pictureMs?: () => number
}

/**
 * A scene that is on: the world, what was done to it, and what there is to tell. It needs no page: the same scene, seed and
 * actions have the same trace wherever they run. Between two frames the world stands; requested actions are carried out then.
 */
export class Simulation {
  readonly scene: Scene
  readonly seed: number
  readonly play: Play
  readonly journal: Journal
  readonly flights: Flights
  readonly injector: FaultInjector
  readonly actions: TimedAction[] = []
  /** The visitor has interfered: the expectation of the scenario no longer applies. */
  touched = false
  /** How the scenario came out, once its end was reached untouched. */
  result: ScenarioResult | undefined
  readonly #viewModels: ViewModelBuilder
  readonly #asked: Action[] = []
  readonly #ahead: TimedAction[]
  readonly #roles = new Map<string, string>()
  #findings = 0

  constructor(options: SimulationOptions, play: Play) {
    this.scene = options.scene
    this.seed = options.seed
    this.play = play
    this.#ahead = [...(options.actions ?? [])]
    this.journal = new Journal(play)
    this.flights = new Flights(play.world, options.pictureMs ?? (() => 0))
    this.injector = new FaultInjector(play, (who, text) => this.journal.add(who, text, 'hand'))
    this.#viewModels = new ViewModelBuilder(play, this.injector)
    for (const member of play.system.cluster?.list ?? []) this.#roles.set(member.name, this.#roleOf(member.name))
    play.world.afterEvent(() => this.#watchRoles())
    if (this.scene.free === true) for (const name of play.clients.keys()) this.#start(name)
  }

  static async open(options: SimulationOptions): Promise<Simulation> {
    const { scene, seed } = options
    const wait = scene.free === true ? { answerWait: FREE_ANSWER_WAIT } : {}
    const play = await openScenario(scene.scenario, { seed, endless: true, ...wait })
    return new Simulation(options, play)
  }

  get nowUs(): number {
    return this.play.world.nowUs
  }

  /** Second of the scene. */
  get at(): number {
    return this.play.at(this.nowUs)
  }

  get traceHash(): string {
    return this.play.world.trace.digest
  }

  /** The second at which a scenario ends; undefined: never. */
  get until(): number | undefined {
    return this.scene.free === true ? undefined : this.scene.scenario.until
  }

  /** Wants something done: it is done when the world stands, by the next `advance`. */
  act(action: Action): void {
    this.#asked.push(action)
  }

  /** Runs the world until `toUs`, or until `stop` returns true. Carries out requested actions first. */
  async advance(toUs: number, stop?: () => boolean): Promise<void> {
    await this.#doAsked()
    for (;;) {
      const next = this.#ahead[0]
      if (next === undefined || next.atUs > toUs) break
      if (next.atUs > this.nowUs) {
        await this.#run(next.atUs, stop)
        if (this.nowUs < next.atUs) return
      }
      this.#ahead.shift()
      await this.#apply(next.action)
    }
    if (toUs > this.nowUs) await this.#run(toUs, stop)
  }

  viewModel(): ViewModel {
    const view = this.#viewModels.viewModel()
    for (const { rule, text, who, atUs } of view.findings.slice(this.#findings)) {
      this.journal.add(who[0] ?? '', `${rule}: ${text}`, 'violation', atUs)
    }
    this.#findings = view.findings.length
    return view
  }

  #start(name: string): void {
    // Not an action of a visitor: it belongs to the scene.
    this.play.world.at(this.play.startUs, 'begin', () => this.injector.do({ do: 'auto', who: name, on: true }))
  }

  async #doAsked(): Promise<void> {
    for (let action = this.#asked.shift(); action !== undefined; action = this.#asked.shift()) {
      await this.#apply(action)
    }
  }

  async #apply(action: Action): Promise<void> {
    // All of this microsecond comes first, so that the same action at the same time finds the same world.
    await this.play.world.run(this.nowUs)
    if (this.actions.length < ACTIONS_MAX) this.actions.push({ atUs: this.nowUs, action })
    if (this.result === undefined) this.touched = true
    try {
      this.injector.do(action)
    } catch (error) {
      this.journal.add('', error instanceof Error ? error.message : String(error), 'fault')
    }
  }

  async #run(toUs: number, stop?: () => boolean): Promise<void> {
    const { play } = this
    const endUs = this.until === undefined ? Number.POSITIVE_INFINITY : play.startUs + Math.round(this.until * US)
    const passes = this.nowUs < endUs && toUs >= endUs
    await play.world.run(passes ? endUs : toUs, stop)
    if (!passes || this.nowUs < endUs) return
    if (!this.touched && this.result === undefined) this.result = resultOf(play)
    if (toUs > endUs) await play.world.run(toUs, stop)
  }

  #roleOf(name: string): string {
    const member = this.play.system.cluster?.member(name)
    if (member?.replica === undefined || !member.running) return 'down'
    const { role, term } = member.replica.status
    return `${role}|${term}`
  }

  #watchRoles(): void {
    for (const [name, before] of this.#roles) {
      const now = this.#roleOf(name)
      if (now === before) continue
      this.#roles.set(name, now)
      const [role, term] = now.split('|')
      if (role === 'leader') this.journal.add(name, `leads in term ${term}`, 'role')
      if (role === 'candidate') this.journal.add(name, `asks for votes in term ${term}`, 'role')
      if (role === 'follower' && before.startsWith('leader')) this.journal.add(name, 'leads no more', 'role')
    }
  }
}
