import type { EndOfProcess, Process } from '../process.js'
import { hashText } from '../random.js'
import { digestOf } from '../trace.js'
import type { World } from '../world.js'
import type { Address, Label } from './datagrams.js'
import type { Link } from './link.js'

/** Events of a connection, each in a turn of the process: any number of `received` after `opened`, then one `closed`. */
export interface ConnectionEvents {
  /** For the side that began it. */
  opened?(): void
  received(bytes: Uint8Array): void
  /** Not after its own `close`. */
  closed(error: Error): void
}

/** One end of an ordered connection. Nothing is lost on it; it may stand still for any time, or break. */
export interface Connection {
  /** The other machine. */
  readonly peer: string
  send(bytes: Uint8Array, label?: Label): void
  /** What was sent before still arrives; no further events here. */
  close(): void
  /** Bytes that wait for the link to open. */
  readonly buffered: number
}

type Listener = { readonly process: Process; readonly accept: (connection: Connection) => ConnectionEvents }

/** Ordered connections, with a system on both machines that answers for them: it accepts for a paused process, too. */
export class Streams {
  readonly world: World
  readonly link: (from: string, to: string) => Link
  readonly #listeners = new Map<string, Listener>()
  readonly #open = new Set<End>()

  constructor(world: World, link: (from: string, to: string) => Link) {
    this.world = world
    this.link = link
  }

  listen(process: Process, port: string, accept: Listener['accept']): () => void {
    const key = `${process.machine.name}:${port}`
    if (this.#listeners.has(key)) throw new Error(`the port ${key} is taken`)
    const listener = { process, accept }
    this.#listeners.set(key, listener)
    const stop = () => {
      if (this.#listeners.get(key) === listener) this.#listeners.delete(key)
    }
    process.onEnd(stop)
    return stop
  }

  connect(process: Process, to: Address, events: ConnectionEvents): Connection {
    const end = new End(this, process, to.machine, events)
    end.transmit(OPEN, 0, undefined, () => this.#knock(end, to))
    return end
  }

  reset(a: string, b: string): void {
    for (const end of [...this.#open]) {
      const machine = end.process.machine.name
      if ((machine === a && end.peer === b) || (machine === b && end.peer === a)) end.broken('the connection was reset')
    }
  }

  /**
   * Something in the middle has forgotten the connections between two machines, as a router that restarts does: nothing
   * arrives on them any more, and neither side is told.
   */
  forget(a: string, b: string): void {
    for (const end of this.#open) {
      const machine = end.process.machine.name
      if ((machine === a && end.peer === b) || (machine === b && end.peer === a)) end.forgotten = true
    }
  }

  /** @internal */
  opened(end: End): void {
    this.#open.add(end)
  }

  /** @internal */
  over(end: End): void {
    this.#open.delete(end)
  }

  /** A connection's first segment has arrived at the machine. */
  #knock(end: End, to: Address): void {
    if (!this.world.machineOf(to.machine).on) return
    const listener = this.#listeners.get(`${to.machine}:${to.port}`)
    if (listener === undefined) {
      const back = this.link(to.machine, end.process.machine.name)
      this.backwards(back, () => end.broken(`nothing listens at ${to.machine}:${to.port}`))
      return
    }
    const other = new End(this, listener.process, end.process.machine.name, undefined)
    other.pair(end)
    end.pair(other)
    other.transmit(OPEN, 0, undefined, () => end.established())
    listener.process.turn('input', () => other.accepted(listener.accept(other)))
  }

  /** @internal A reset on its way: it may get lost in a cut, and is not resent. */
  backwards(link: Link, arrive: () => void): void {
    if (link.isCut) return
    link.whenOpen(false, () => {
      const delayUs = link.segmentUs(undefined)
      if (delayUs !== 'broken') link.travel(delayUs, RESET, 0, arrive)
    })
  }
}

/**
 * One end. States: opening → open → over. The accepting end is open from the start; what arrives before its process has
 * accepted waits with the process.
 */
class End implements Connection {
  readonly process: Process
  readonly peer: string
  readonly #streams: Streams
  #events: ConnectionEvents | undefined
  #other: End | undefined
  /** What is sent from now on goes nowhere. */
  forgotten = false
  #over = false
  #closing = false
  #arriveUs = 0
  #buffered = 0
  readonly #offEnd: () => void

  constructor(streams: Streams, process: Process, peer: string, events: ConnectionEvents | undefined) {
    this.#streams = streams
    this.process = process
    this.peer = peer
    this.#events = events
    this.#offEnd = process.onEnd((how) => this.#processEnded(how))
    streams.opened(this)
  }

  get buffered(): number {
    return this.#buffered
  }

  send(bytes: Uint8Array, label?: Label): void {
    if (this.#over || this.#closing || !this.process.alive) return
    this.transmit(DATA, digestOf(bytes), label, () => this.#other?.arrived(bytes), bytes.length)
  }

  close(): void {
    if (this.#over || this.#closing) return
    this.#closing = true
    this.#events = undefined
    if (this.forgotten) return this.#finish()
    this.transmit(CLOSE, 0, undefined, () => {
      this.#other?.broken('the other side has closed the connection')
      this.#finish()
    })
  }

  // --- For the other end ---

  pair(other: End): void {
    this.#other = other
  }

  accepted(events: ConnectionEvents): void {
    if (!this.#closing) this.#events = events
  }

  established(): void {
    this.process.turn('input', () => {
      if (!this.#over) this.#events?.opened?.()
    })
  }

  arrived(bytes: Uint8Array): void {
    if (!this.process.machine.on) return
    if (this.#over) {
      // The system of this machine knows no such connection.
      const link = this.#streams.link(this.process.machine.name, this.peer)
      this.#streams.backwards(link, () => this.#other?.broken('the connection was reset'))
      return
    }
    this.process.turn('input', () => {
      if (!this.#over) this.#events?.received(bytes)
    })
  }

  broken(why: string): void {
    if (this.#over) return
    this.#finish()
    const events = this.#events
    this.process.turn('input', () => events?.closed(new Error(why)))
  }

  /** Sends a segment in order; it waits while the link is cut or clogged. */
  transmit(kind: number, detail: number, label: Label | undefined, arrive: () => void, bytes = 0): void {
    const { world } = this.#streams
    const link = this.#streams.link(this.process.machine.name, this.peer)
    const sentUs = world.nowUs
    this.#buffered += bytes
    if (this.forgotten) return
    link.whenOpen(true, () => {
      this.#buffered -= bytes
      if (this.#over && kind !== CLOSE) return
      const delayUs = link.segmentUs(label?.text)
      if (delayUs === 'broken') {
        this.#other?.broken('a broken record')
        return this.broken('a broken record')
      }
      this.#arriveUs = Math.max(this.#arriveUs, world.nowUs + delayUs)
      if (kind === DATA) this.#show(label, sentUs)
      link.travel(this.#arriveUs - world.nowUs, kind, detail, () => {
        if (label !== undefined) this.#tell(label, sentUs)
        arrive()
      })
    })
  }

  #show(label: Label | undefined, sentUs: number): void {
    const { text, token } = label ?? {}
    const from = this.process.machine.name
    const { network } = this.#streams.world
    network.onFlight?.({ from, to: this.peer, label: text, token, sentUs, arriveUs: this.#arriveUs })
  }

  #tell(label: Label, sentUs: number): void {
    const from = this.process.machine.name
    const token = label.token === undefined ? {} : { token: label.token }
    const outcome = this.#other?.process.alive === true && !this.#other.#over ? 'arrived' : 'lost'
    const { timeline } = this.#streams.world
    timeline.add({ kind: 'message', from, to: this.peer, label: label.text, ...token, sentUs, outcome })
  }

  #processEnded(how: EndOfProcess): void {
    if (this.#over) return
    this.#events = undefined
    this.#finish()
    // The operating system continues for a killed process: what was sent arrives, then the end of the connection.
    if (how === 'killed') this.transmit(CLOSE, 0, undefined, () => this.#other?.broken('the other side is gone'))
  }

  #finish(): void {
    this.#over = true
    this.#offEnd()
    this.#streams.over(this)
  }
}

const OPEN = hashText('open')
const DATA = hashText('data')
const CLOSE = hashText('close')
const RESET = hashText('reset')
