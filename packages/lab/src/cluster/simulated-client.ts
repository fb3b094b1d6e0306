import {
  type ClientPlatform,
  type Connector,
  parseCursor,
  createLocksOn,
  type Hold,
  holdInternals,
  type Locks,
  type LocksOptions,
  ProtocolEngine,
} from '@leasehold/client'
import { splitToken } from '@leasehold/core'
import type { BeliefChecker } from '../checkers/belief-checker.js'
import type { WatchChecker } from '../checkers/watch-checker.js'
import { clientPlatform } from '../world/bindings/client-platform.js'
import { StreamConnector } from '../world/bindings/connector.js'
import type { Machine } from '../world/machine.js'
import type { Process } from '../world/process.js'

export interface SimulatedClientOptions {
  readonly name: string
  readonly machine: Machine
  readonly urls: readonly string[]
  readonly locks?: LocksOptions
  readonly beliefs: BeliefChecker
  readonly watches?: WatchChecker
  /** The first process; default: a new one. */
  readonly process?: Process
  /** Puts something between the client and its connections. */
  readonly connector?: (inner: StreamConnector) => Connector
}

/** An application with the production client, in a process of a simulated machine. */
export class SimulatedClient {
  readonly name: string
  readonly machine: Machine
  process: Process
  platform: ClientPlatform
  locks: Locks
  /** A fault has made its clocks worse than clients are promised to bear. */
  clocksBroken = false

  readonly #options: SimulatedClientOptions

  constructor(options: SimulatedClientOptions) {
    this.#options = options
    this.name = options.name
    this.machine = options.machine
    const started = this.#begin()
    this.process = started.process
    this.platform = started.platform
    this.locks = started.locks
  }

  /** Starts it again, after its process has ended. */
  restart(): void {
    if (!this.machine.on) this.machine.powerOn()
    Object.assign(this, this.#begin())
  }

  /** Tells the checks that the client has a hold from now on. */
  believes(hold: Hold): void {
    const { process } = this
    const { serial } = splitToken(hold.id)
    const { host } = hold[holdInternals]
    void hold.lost.then(() => this.#over.add(hold))
    this.#options.beliefs.add({
      client: this.name,
      hold: serial as never,
      locks: hold.locks.map(({ name, mode }) => ({ name, mode })),
      leaseMs: host.unconfirmedMs() + host.remaining(),
      // Looked at from outside, without the turn that its own code would need.
      held: () => process.alive && host.ended === undefined && host.peek() > 0 && !this.#over.has(hold),
      clocksKept: () => !this.clocksBroken,
    })
  }

  /** The hold is no longer held, by the client's own doing. */
  forgets(hold: Hold): void {
    this.#over.add(hold)
    this.#options.beliefs.drop(splitToken(hold.id).serial as never)
  }

  /** Begins to record what a watch of everything shows after the cursor `from`. Returns what takes each cursor. */
  watches(from: string): (cursor: string) => void {
    const record = this.#options.watches?.begin(this.name, parseCursor(from))
    return (cursor) => record?.places.push(parseCursor(cursor))
  }

  readonly #over = new WeakSet<Hold>()

  #begin(): { process: Process; platform: ClientPlatform; locks: Locks } {
    const { name, machine, urls, locks, process: given } = this.#options
    const process = given?.alive ? given : machine.spawn({ name, promises: true })
    const platform = clientPlatform(process)
    const inner = new StreamConnector(process)
    const connector = this.#options.connector?.(inner) ?? inner
    const engine = new ProtocolEngine({ urls, connector, platform, clientName: name })
    return { process, platform, locks: createLocksOn(engine, { clientName: name, ...locks }, { platform }) }
  }
}
