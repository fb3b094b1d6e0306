import type { Action, TimedAction } from '../view-model/actions.js'
import type { Scene } from '../view-model/scenes.js'
import { Simulation } from '../view-model/simulation.js'

/** Simulated time per time of the reader. */
export const SPEEDS = [0.02, 0.1, 0.25, 0.5, 1, 2, 5, 10] as const
/** The world may take so much of a frame. */
const BUDGET_MS = 14
/** And this much while it jumps ahead. */
const JUMP_BUDGET_MS = 60
/** A page that was hidden does not try to catch up. */
const FRAME_MAX_MS = 100
/** How long dots keep moving after a step. */
const AFTER_STEP_MS = 600
const STEP_MAX_US = 2_000_000
const BUDGET_LOOK = 16

/** Keeps a simulation going with the frames of the page. One loop; whatever is wanted of the world is done inside it. */
export class Driver {
  playing = true
  speed = 1
  /** The clock of the picture. */
  pictureMs = 0
  /** The world cannot keep up with the speed that was asked for. */
  slow = false
  simulation: Simulation | undefined
  problem: string | undefined
  #movesUntil = 0
  #lastFrame = 0
  #steps = 0
  #jumpUs = 0
  #behind = 0
  #opening = 0
  #seenResult = false

  readonly #changed: () => void

  constructor(changed: () => void) {
    this.#changed = changed
    const frame = (now: number): void => {
      void this.#frame(now).then(() => requestAnimationFrame(frame))
    }
    requestAnimationFrame(frame)
  }

  async open(scene: Scene, seed: number, actions: readonly TimedAction[] = []): Promise<void> {
    const turn = ++this.#opening
    try {
      const simulation = await Simulation.open({ scene, seed, actions, pictureMs: () => this.pictureMs })
      if (turn !== this.#opening) return
      this.simulation = simulation
      this.problem = undefined
      this.#seenResult = false
      // The world stands right before second 0.
      this.#jumpUs = Math.max(0, simulation.play.startUs - simulation.nowUs)
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error)
    }
    this.#changed()
  }

  act(action: Action): void {
    this.simulation?.act(action)
    this.#movesUntil = Math.max(this.#movesUntil, this.pictureMs + AFTER_STEP_MS)
  }

  toggle(): void {
    this.playing = !this.playing
    this.#changed()
  }

  setSpeed(speed: number): void {
    this.speed = speed
    this.#changed()
  }

  /** To the next thing that there is to tell. */
  step(): void {
    this.playing = false
    this.#steps++
    this.#movesUntil = this.pictureMs + AFTER_STEP_MS
  }

  /** Ahead by so many seconds, as fast as it goes. */
  jump(seconds: number): void {
    this.#jumpUs += Math.round(seconds * 1_000_000)
  }

  /** It is still on its way to where it was told to jump. */
  get jumps(): boolean {
    return this.#jumpUs > 0
  }

  async #frame(now: number): Promise<void> {
    const dt = Math.min(FRAME_MAX_MS, now - this.#lastFrame)
    this.#lastFrame = now
    const { simulation } = this
    if (simulation === undefined) return
    try {
      const moves = this.playing || this.pictureMs < this.#movesUntil
      if (moves) this.pictureMs += dt
      const before = simulation.nowUs
      await this.#goOn(simulation, dt)
      if (moves || simulation.nowUs !== before) simulation.flights.prune(simulation.nowUs)
      if (simulation.result !== undefined && !this.#seenResult) {
        this.#seenResult = true
        this.playing = false
      }
    } catch (error) {
      this.playing = false
      this.problem = error instanceof Error ? error.message : String(error)
    }
    if (this.simulation === simulation) this.#changed()
  }

  async #goOn(simulation: Simulation, dt: number): Promise<void> {
    const end = performance.now() + (this.#jumpUs > 0 ? JUMP_BUDGET_MS : BUDGET_MS)
    let events = 0
    const late = (): boolean => ++events % BUDGET_LOOK === 0 && performance.now() > end
    if (this.#jumpUs > 0) {
      const goal = simulation.nowUs + this.#jumpUs
      await simulation.advance(goal, late)
      this.#jumpUs = Math.max(0, goal - simulation.nowUs)
      return
    }
    if (this.#steps > 0) {
      this.#steps--
      const told = simulation.flights.told + simulation.journal.count
      await simulation.advance(
        simulation.nowUs + STEP_MAX_US,
        () => simulation.flights.told + simulation.journal.count !== told,
      )
      return
    }
    const goal = simulation.nowUs + (this.playing ? Math.round(dt * 1000 * this.speed) + this.#behind : 0)
    this.#behind = 0
    await simulation.advance(goal, late)
    this.slow = this.playing && simulation.nowUs < goal
  }
}
