import type { Process } from '../process.js'
import type { World } from '../world.js'
import { type Address, type Datagram, Datagrams, type DatagramHandler, type Label } from './datagrams.js'
import { CALM, Link, type LinkProfile, LOOPBACK } from './link.js'
import { type Connection, type ConnectionEvents, Streams } from './streams.js'

/** A frame that sets out, or that is lost at once. For pictures: looking on changes nothing. */
export interface Flight {
  readonly from: string
  readonly to: string
  /** Not there: a frame of the members among themselves, or one without a meaning for people. */
  readonly label: string | undefined
  readonly token: string | undefined
  readonly sentUs: number
  /** Undefined: it is lost. */
  readonly arriveUs: number | undefined
}

/** Everything between machines: directed links, frames that stand alone (datagrams), and ordered connections (streams). */
export class Network {
  /** What new links are like. */
  readonly defaults: LinkProfile = { ...CALM }
  /** Hears of every frame that sets out. */
  onFlight: ((flight: Flight) => void) | undefined
  readonly #world: World
  readonly #links = new Map<string, Map<string, Link>>()
  readonly #datagrams: Datagrams
  readonly #streams: Streams

  constructor(world: World) {
    this.#world = world
    const link = (from: string, to: string) => this.link(from, to)
    this.#datagrams = new Datagrams(world, link)
    this.#streams = new Streams(world, link)
  }

  /** Whether anybody looks at the labels of frames: making them costs more than the frame does. */
  get wantsLabels(): boolean {
    return this.#world.timeline.enabled || this.onFlight !== undefined || this.#held
  }

  /** @internal Frames are picked by their labels from now on. */
  holds(): void {
    this.#held = true
  }

  #held = false

  /** The directed link between two machines. */
  link(from: string, to: string): Link {
    let row = this.#links.get(from)
    if (row === undefined) {
      row = new Map()
      this.#links.set(from, row)
    }
    let link = row.get(to)
    if (link === undefined) {
      link = new Link(this.#world, from, to, from === to ? LOOPBACK : this.defaults)
      row.set(to, link)
    }
    return link
  }

  // --- Datagrams ---

  /** Takes frames that arrive at the port of the process's machine, until the process ends. */
  bind<Payload extends Datagram>(process: Process, port: string, handler: DatagramHandler<Payload>): () => void {
    return this.#datagrams.bind(process, port, handler as DatagramHandler<Datagram>)
  }

  /** Sends a frame. It may be lost, doubled, late, overtaken or broken. */
  send(process: Process, to: Address, payload: Datagram, label?: Label): void {
    this.#datagrams.send(process, to, payload, label)
  }

  // --- Streams ---

  /** Takes connections at the port of the process's machine, until the process ends. */
  listen(process: Process, port: string, accept: (connection: Connection) => ConnectionEvents): () => void {
    return this.#streams.listen(process, port, accept)
  }

  /** Begins a connection; its events come later, never inside this call. */
  connect(process: Process, to: Address, events: ConnectionEvents): Connection {
    return this.#streams.connect(process, to, events)
  }

  /** Resets all connections between two machines, as a firewall that restarts does. */
  resetConnections(a: string, b: string): void {
    this.#streams.reset(a, b)
  }

  /** All connections between two machines are forgotten by a middlebox: both sides still believe in theirs. */
  forgetConnections(a: string, b: string): void {
    this.#streams.forget(a, b)
  }

  // --- Topologies; each returns the way back ---

  /** Both directions. */
  cut(a: string, b: string): () => void {
    return all([this.link(a, b).cut(), this.link(b, a).cut()])
  }

  /** Only `from` → `to`: `to` does not hear `from` any more. */
  cutOneWay(from: string, to: string): () => void {
    return this.link(from, to).cut()
  }

  /** Cuts a machine off from all others. */
  isolate(name: string): () => void {
    return all(this.#others([name]).map((other) => this.cut(name, other)))
  }

  /** Only machines of the same group see each other; those in no group see everybody. */
  split(...groups: readonly (readonly string[])[]): () => void {
    const undo: (() => void)[] = []
    groups.forEach((group, i) => {
      for (const other of groups.slice(i + 1)) for (const a of group) for (const b of other) undo.push(this.cut(a, b))
    })
    return all(undo)
  }

  /** Two halves that see each other only through `middle`, which sees both. */
  bridge(left: readonly string[], _middle: string, right: readonly string[]): () => void {
    return this.split(left, right)
  }

  /** Everybody sees the two neighbours in the list only. */
  ring(names: readonly string[]): () => void {
    const undo: (() => void)[] = []
    names.forEach((a, i) => {
      names.forEach((b, j) => {
        const apart = j - i
        if (apart > 1 && apart < names.length - 1) undo.push(this.cut(a, b))
      })
    })
    return all(undo)
  }

  #others(names: readonly string[]): string[] {
    return this.#world.machines.map((machine) => machine.name).filter((name) => !names.includes(name))
  }
}

export function all(undo: readonly (() => void)[]): () => void {
  return () => {
    for (const back of undo) back()
  }
}
