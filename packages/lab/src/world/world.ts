import { Heap } from '@leasehold/core'
import { hop } from './hop.js'
import { Machine, type MachineOptions } from './machine.js'
import { Network } from './network/network.js'
import { cancel, type PlannedEvent } from './planned-event.js'
import type { Process } from './process.js'
import { hashText, RandomStream } from './random.js'
import { Timeline } from './timeline.js'
import { TraceHash } from './trace.js'

export interface WorldOptions {
  /** 32 bits; decides every draw. */
  readonly seed: number
  /** Called with every event before it runs, for a readable trace. */
  readonly onEvent?: (event: PlannedEvent) => void
}

/** An uncaught error. It ends its process. */
export interface Uncaught {
  readonly atUs: number
  readonly process: string
  readonly error: unknown
}

function isSooner(a: PlannedEvent, b: PlannedEvent): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.sequence < b.sequence)
}

/** Most events without time passing. More mean an endless loop. */
const EVENTS_AT_ONCE_MAX = 2_000_000

/**
 * The deterministic world: one thread, one heap of events, machines with processes and clocks, a network between them.
 * Equal seeds and equal scripts give equal traces, in Node and in browsers. Time is in whole microseconds and moves only
 * from one event to the next.
 *
 * @example
 * const world = new World({ seed: 1 })
 * const process = world.machine('C1').spawn({ promises: true })
 * process.after(1_000_000, () => console.log(world.nowUs))
 * await world.run(10_000_000)
 */
export class World {
  readonly seed: number
  readonly trace = new TraceHash()
  readonly timeline: Timeline
  readonly network: Network
  readonly uncaughtErrors: Uncaught[] = []
  readonly #machines = new Map<string, Machine>()
  readonly #streams = new Map<string, RandomStream>()
  readonly #heap = new Heap<PlannedEvent>(isSooner)
  readonly #onEvent: ((event: PlannedEvent) => void) | undefined
  readonly #afterEvent = new Set<() => void>()
  #nowUs = 0
  #sequence = 0
  #atOnce = 0
  #needsHop = false

  constructor(options: WorldOptions) {
    this.seed = options.seed | 0
    this.#onEvent = options.onEvent
    this.timeline = new Timeline(this)
    this.network = new Network(this)
  }

  /** True time, in microseconds since the beginning. */
  get nowUs(): number {
    return this.#nowUs
  }

  /** How many events are planned. */
  get pending(): number {
    return this.#heap.size
  }

  // --- Machines and random streams ---

  /** Creates a machine; its name is unique. */
  machine(name: string, options: MachineOptions = {}): Machine {
    if (this.#machines.has(name)) throw new Error(`there is a machine ${name} already`)
    const machine = new Machine(this, name, options)
    this.#machines.set(name, machine)
    return machine
  }

  machineOf(name: string): Machine {
    const machine = this.#machines.get(name)
    if (machine === undefined) throw new Error(`there is no machine ${name}`)
    return machine
  }

  get machines(): readonly Machine[] {
    return [...this.#machines.values()]
  }

  /** The draws of one concern of one entity; the same stream at every call. */
  stream(concern: string, entity: string): RandomStream {
    const key = `${concern}\n${entity}`
    let stream = this.#streams.get(key)
    if (stream === undefined) {
      stream = new RandomStream(this.seed, concern, entity)
      this.#streams.set(key, stream)
    }
    return stream
  }

  // --- Scripts and checks ---

  /** Runs `action` at a time, for schedules of faults. Returns a function that cancels it. */
  at(atUs: number, what: string, action: () => void): () => void {
    if (!Number.isSafeInteger(atUs)) throw new RangeError(`${what} at ${atUs} µs`)
    const event = this.plan(Math.max(atUs, this.#nowUs), 0, hashText(what), 0, action)
    return () => {
      cancel(event)
    }
  }

  after(delayUs: number, what: string, action: () => void): () => void {
    return this.at(this.#nowUs + delayUs, what, action)
  }

  /** Runs after each event (and its promises), for checkers. */
  afterEvent(listener: () => void): () => void {
    this.#afterEvent.add(listener)
    return () => this.#afterEvent.delete(listener)
  }

  // --- Running ---

  /** Runs all events up to and including `untilUs`, or until `stop` returns true after an event. */
  async run(untilUs: number, stop?: () => boolean): Promise<void> {
    // From here on every step runs inside a promise, as `hop` requires.
    await Promise.resolve()
    while (this.#step(untilUs)) {
      if (this.#needsHop) await hop()
      for (const listener of this.#afterEvent) listener()
      if (stop?.() === true) return
    }
    this.#nowUs = Math.max(this.#nowUs, untilUs)
  }

  /** The same for a world without promises: faster, and synchronous. Throws when a process that uses promises runs. */
  runSync(untilUs: number, stop?: () => boolean): void {
    while (this.#step(untilUs)) {
      if (this.#needsHop) throw new Error('a process of this world uses promises: run it with run()')
      for (const listener of this.#afterEvent) listener()
      if (stop?.() === true) return
    }
    this.#nowUs = Math.max(this.#nowUs, untilUs)
  }

  // --- For machines, processes and the network ---

  /** @internal */
  plan(atUs: number, who: number, kind: number, detail: number, action: () => void): PlannedEvent {
    // Signed numbers of 32 bits need no object of their own; for the trace they are the same.
    const event = { atUs, sequence: this.#sequence++, who: who | 0, kind: kind | 0, detail, action, cancelled: false }
    this.#heap.push(event)
    return event
  }

  /** @internal A process starts to run. */
  enter(process: Process): void {
    if (process.promises) this.#needsHop = true
  }

  /** @internal */
  uncaught(process: Process, error: unknown): void {
    this.uncaughtErrors.push({ atUs: this.#nowUs, process: process.name, error })
  }

  #step(untilUs: number): boolean {
    for (;;) {
      const event = this.#heap.peek()
      if (event === undefined || event.atUs > untilUs) return false
      this.#heap.pop()
      if (event.cancelled) continue
      this.#atOnce = event.atUs === this.#nowUs ? this.#atOnce + 1 : 0
      if (this.#atOnce > EVENTS_AT_ONCE_MAX)
        throw new Error(`more than ${EVENTS_AT_ONCE_MAX} events at ${event.atUs} µs`)
      this.#nowUs = event.atUs
      this.#needsHop = false
      this.trace.event(event.atUs, event.who, event.kind, event.detail)
      this.#onEvent?.(event)
      event.action()
      return true
    }
  }
}
