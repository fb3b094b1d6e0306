import { RateClock, STANDS_STILL_PPM } from './clocks.js'
import { Process, type ProcessOptions } from './process.js'
import { hashText } from './random.js'
import { cancel, type PlannedEvent } from './planned-event.js'
import type { World } from './world.js'

export type ClockName = 'monotonic' | 'boot' | 'wall'

export interface MachineOptions {
  /** How fast all clocks of the machine run: parts per million more than true time. Default 0. */
  readonly driftPpm?: number
  /** What the clocks show at the machine's beginning, in microseconds. */
  readonly monotonicUs?: number
  readonly wallUs?: number
}

const MONOTONIC_START_US = 5_000_000
/** A morning in 2026. */
const WALL_START_US = 1_796_000_000_000_000

interface Timer {
  readonly dueUs: number
  readonly process: Process
  readonly run: () => void
  planned: PlannedEvent | undefined
  /** Taken back; it may still wait in a paused process. */
  over: boolean
}

/**
 * A machine: three clocks, and processes. The monotonic clock stands still while the machine is suspended, the boot
 * clock and the wall clock keep running; the wall clock may be stepped. Timers of its processes are on the monotonic clock.
 * The owner of a disk keeps its contents; a power cut is reported through {@link Machine.onPowerOff}.
 */
export class Machine {
  readonly world: World
  readonly name: string
  /** For the trace. */
  readonly id: number
  readonly processes = new Set<Process>()
  readonly #clocks: Record<ClockName, RateClock>
  readonly #frozen = new Set<ClockName>()
  readonly #timers = new Set<Timer>()
  readonly #powerOff = new Set<() => void>()
  #driftPpm: number
  #suspensions = 0
  #on = true

  constructor(world: World, name: string, options: MachineOptions = {}) {
    this.world = world
    this.name = name
    this.id = hashText(name)
    this.#driftPpm = options.driftPpm ?? 0
    const monotonicUs = options.monotonicUs ?? MONOTONIC_START_US
    const clock = (localUs: number) => new RateClock(world.nowUs, localUs, this.#driftPpm)
    this.#clocks = {
      monotonic: clock(monotonicUs),
      boot: clock(monotonicUs),
      wall: clock(options.wallUs ?? WALL_START_US),
    }
  }

  get on(): boolean {
    return this.#on
  }

  /** How many suspensions are in force. */
  get suspensions(): number {
    return this.#suspensions
  }

  /** What a clock shows, in microseconds. */
  clockUs(clock: ClockName): number {
    return this.#clocks[clock].at(this.world.nowUs)
  }

  /** Starts a process. The machine must be on. */
  spawn(options: ProcessOptions): Process {
    if (!this.#on) throw new Error(`${this.name} has no power`)
    const process = new Process(this, options)
    this.processes.add(process)
    return process
  }

  // --- Faults ---

  /** All clocks run this much fast from now on. */
  drift(ppm: number): void {
    this.#driftPpm = ppm
    this.#clocksChanged()
  }

  /** The clock jumps. A monotonic clock that jumps back is broken hardware, or a broken hypervisor. */
  step(clock: ClockName, byUs: number): void {
    this.#clocks[clock].step(this.world.nowUs, byUs)
    if (clock === 'monotonic') this.#replan()
  }

  freeze(clock: ClockName): void {
    this.#frozen.add(clock)
    this.#clocksChanged()
  }

  /** The clock continues from where it stood. */
  unfreeze(clock: ClockName): void {
    this.#frozen.delete(clock)
    this.#clocksChanged()
  }

  /** Suspends the machine: no process runs, the monotonic clock stands still. `forUs`: wakes by itself. */
  suspend(forUs?: number): void {
    this.#suspensions++
    for (const process of this.processes) process.pause()
    this.#clocksChanged()
    if (forUs !== undefined) this.world.after(forUs, 'wake', () => this.wake())
  }

  wake(): void {
    if (this.#suspensions === 0) return
    this.#suspensions--
    this.#clocksChanged()
    for (const process of [...this.processes]) process.resume()
  }

  /** Power cut: all processes are gone at once, without a last word to anybody. */
  powerOff(): void {
    if (!this.#on) return
    this.#on = false
    for (const process of [...this.processes]) process.end('power')
    this.#suspensions = 0
    this.#clocksChanged()
    for (const listener of [...this.#powerOff]) listener()
  }

  /** Power is back; what runs on the machine is for the caller to start. Its clocks have gone on. */
  powerOn(): void {
    this.#on = true
  }

  /** Told after a power cut: for disks, that now lose what was not synced. */
  onPowerOff(listener: () => void): () => void {
    this.#powerOff.add(listener)
    return () => this.#powerOff.delete(listener)
  }

  // --- For processes ---

  /** @internal A timer on the monotonic clock. Returns a function that takes it back. */
  timer(process: Process, delayUs: number, run: () => void): () => void {
    const timer: Timer = {
      dueUs: this.clockUs('monotonic') + Math.max(0, delayUs),
      process,
      run,
      planned: undefined,
      over: false,
    }
    this.#timers.add(timer)
    this.#plan(timer)
    return () => this.#forget(timer)
  }

  /** @internal */
  ended(process: Process): void {
    this.processes.delete(process)
    for (const timer of this.#timers) if (timer.process === process) this.#forget(timer)
  }

  #plan(timer: Timer): void {
    const { world } = this
    const at = this.#clocks.monotonic.when(timer.dueUs)
    if (at === undefined) {
      timer.planned = undefined
      return
    }
    timer.planned = world.plan(Math.max(at, world.nowUs), timer.process.id, TIMER, 0, () => {
      this.#timers.delete(timer)
      timer.process.turnWith('timer', fire, timer, undefined)
    })
  }

  #forget(timer: Timer): void {
    timer.over = true
    if (timer.planned) cancel(timer.planned)
    this.#timers.delete(timer)
  }

  #clocksChanged(): void {
    for (const name of ['monotonic', 'boot', 'wall'] as const) {
      const stands = this.#frozen.has(name) || (name === 'monotonic' && this.#suspensions > 0)
      this.#clocks[name].setRate(this.world.nowUs, stands ? STANDS_STILL_PPM : this.#driftPpm)
    }
    this.#replan()
  }

  #replan(): void {
    for (const timer of this.#timers) {
      if (timer.planned) cancel(timer.planned)
      this.#plan(timer)
    }
  }
}

function fire(timer: Timer): void {
  if (!timer.over) timer.run()
}

const TIMER = hashText('timer')
