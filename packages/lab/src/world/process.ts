import type { Machine } from './machine.js'
import { hashText, type RandomStream } from './random.js'
import type { World } from './world.js'

export interface ProcessOptions {
  /** Unique among the processes that run. Default: the machine's name. */
  readonly name?: string
  /**
   * Its code uses promises: after each of its events the world lets every settled promise continue. Code that is all
   * callbacks (a member) does not need that, and runs some ten times as fast without. Default false.
   */
  readonly promises?: boolean
}

/** Why a process ended: its machine lost power (no peer is notified), or it was killed (its connections are reset). */
export type EndOfProcess = 'power' | 'killed'

/** What waits for a paused process. Timers run before input, as in Node's event loop. */
type Lane = 'timer' | 'input'

/** Events that may wait for a paused process. */
const WAITING_MAX = 1_000_000

/**
 * A process of the world. It runs in turns: one event, then everything that its promises do.
 *
 * States: running ↔ paused (events wait; timers fire late, in one burst, when it resumes) → ended. A pause begins between
 * two turns, or at a {@link Process.point} in the middle of one. An ended process never comes back: its machine spawns
 * another one.
 */
export class Process {
  readonly machine: Machine
  readonly world: World
  readonly name: string
  /** For the trace. */
  readonly id: number
  readonly promises: boolean
  #alive = true
  #pauses: number
  /** What has waited while it was paused comes first, and in order. */
  #catchingUp = false
  readonly #waiting: Record<Lane, (() => void)[]> = { timer: [], input: [] }
  #continuations: (() => void)[] = []
  readonly #endListeners = new Set<(how: EndOfProcess) => void>()
  readonly #points = new Map<string, { passed: number; readonly actions: Map<number, () => void> }>()

  /** @internal Use {@link Machine.spawn}. */
  constructor(machine: Machine, options: ProcessOptions) {
    this.machine = machine
    this.world = machine.world
    this.name = options.name ?? machine.name
    this.id = hashText(this.name)
    this.promises = options.promises ?? false
    this.#pauses = machine.suspensions
  }

  get alive(): boolean {
    return this.#alive
  }

  get paused(): boolean {
    return this.#pauses > 0
  }

  // --- What the code in it uses ---

  /** Runs `callback` once, not before `delayUs` have passed on the machine's monotonic clock. */
  after(delayUs: number, callback: () => void): () => void {
    if (!this.#alive) return () => {}
    return this.machine.timer(this, Math.ceil(delayUs), callback)
  }

  /** Runs `callback` in a turn of its own, right after this one. */
  soon(callback: () => void): void {
    if (!this.#alive) return
    this.world.plan(this.world.nowUs, this.id, SOON, 0, () => this.turn('input', callback))
  }

  /** Begins: runs `main` in the first turn. */
  start(main: () => unknown): this {
    this.soon(() => void main())
    return this
  }

  /** Resolves after a time on its own clock. */
  sleep(us: number): Promise<void> {
    return new Promise((resolve) => this.after(us, resolve))
  }

  /** Its own draws. They continue over restarts of the same name, so that nothing is drawn twice. */
  random(concern: string): RandomStream {
    return this.world.stream(concern, this.name)
  }

  /**
   * A place between two statements where a scenario may stop the process: `await process.point('before-write')`. What
   * follows is the rest of the same turn; it comes first when the process resumes, before timers and input.
   */
  point(name: string): Promise<void> | undefined {
    if (!this.#alive) return new Promise(() => {})
    const point = this.#pointOf(name)
    const action = point.actions.get(++point.passed)
    if (action === undefined) return undefined
    point.actions.delete(point.passed)
    action()
    if (!this.#alive) return new Promise(() => {})
    if (!this.paused) return undefined
    return new Promise((resolve) => this.#continuations.push(resolve))
  }

  /** A turn that an event from outside begins: an arrived message, a finished write. Waits while the process is paused. */
  turn(lane: Lane, run: () => void): void {
    if (!this.#alive) return
    if (this.#pauses > 0 || this.#catchingUp) {
      const waiting = this.#waiting[lane]
      if (waiting.length >= WAITING_MAX) throw new Error(`more than ${WAITING_MAX} events wait for ${this.name}`)
      waiting.push(run)
      return
    }
    this.#run(run)
  }

  /** The same for an arrived frame. It has no closure of its own unless it must wait: most turns are of this kind. */
  turnWith<A, B>(lane: Lane, run: (a: A, b: B) => void, a: A, b: B): void {
    if (!this.#alive) return
    if (this.#pauses > 0 || this.#catchingUp) return this.turn(lane, () => run(a, b))
    this.world.enter(this)
    try {
      run(a, b)
    } catch (error) {
      this.#failed(error)
    }
  }

  onEnd(listener: (how: EndOfProcess) => void): () => void {
    this.#endListeners.add(listener)
    return () => this.#endListeners.delete(listener)
  }

  // --- Faults ---

  /** Stops it, as SIGSTOP, a long garbage collection or a blocked event loop does; the clocks keep running. */
  pause(forUs?: number): void {
    if (!this.#alive) return
    this.#pauses++
    if (forUs !== undefined) this.world.after(forUs, 'resume', () => this.resume())
  }

  /** Ends one pause. When the last one ends: the interrupted turn continues, then late timers, then input, in one burst. */
  resume(): void {
    if (!this.#alive || this.#pauses === 0 || --this.#pauses > 0) return
    this.#catchingUp = true
    this.world.plan(this.world.nowUs, this.id, RESUME, 0, () => this.#catchUp())
  }

  /** Ends it at once: nothing of it is left, and its connections are reset. */
  kill(): void {
    this.end('killed')
  }

  /** Runs `action` when the process passes the point for the `nth` time (from 1, counted from its start). */
  atPoint(name: string, nth: number, action: () => void): void {
    this.#pointOf(name).actions.set(nth, action)
  }

  /** The same for the next time that it passes the point. Returns what takes it back. */
  atNextPoint(name: string, action: () => void): () => void {
    const { passed, actions } = this.#pointOf(name)
    actions.set(passed + 1, action)
    return () => {
      if (actions.get(passed + 1) === action) actions.delete(passed + 1)
    }
  }

  /** @internal */
  end(how: EndOfProcess): void {
    if (!this.#alive) return
    this.#alive = false
    this.#waiting.timer = []
    this.#waiting.input = []
    this.#continuations = []
    this.machine.ended(this)
    for (const listener of [...this.#endListeners]) listener(how)
    this.#endListeners.clear()
  }

  /** One late event per turn; a new pause in the middle keeps the rest waiting. */
  #catchUp(): void {
    if (!this.#alive || this.#pauses > 0) return
    const next = this.#continuations.shift() ?? this.#waiting.timer.shift() ?? this.#waiting.input.shift()
    if (next === undefined) {
      this.#catchingUp = false
      return
    }
    this.world.plan(this.world.nowUs, this.id, RESUME, 1, () => this.#catchUp())
    this.#run(next)
  }

  #run(run: () => void): void {
    this.world.enter(this)
    try {
      run()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.world.uncaught(this, error)
    this.kill()
  }

  #pointOf(name: string): { passed: number; readonly actions: Map<number, () => void> } {
    let point = this.#points.get(name)
    if (point === undefined) {
      point = { passed: 0, actions: new Map() }
      this.#points.set(name, point)
    }
    return point
  }
}

const SOON = hashText('soon')
const RESUME = hashText('resume')
