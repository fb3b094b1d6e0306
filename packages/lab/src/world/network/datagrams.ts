import type { Process } from '../process.js'
import { hashText } from '../random.js'
import { digestOf } from '../trace.js'
import type { World } from '../world.js'
import type { Link } from './link.js'

/** A machine and a port of it. */
export interface Address {
  readonly machine: string
  readonly port: string
}

/** Bytes, or a frozen plain object. Objects have a checksum, so a corrupt one never arrives. */
export type Datagram = Uint8Array | object

/** How a frame is named in the timeline; frames without a label are not in it. */
export interface Label {
  readonly text: string
  readonly token?: string
}

export type DatagramHandler<Payload> = (payload: Payload, from: string) => void

interface Bound {
  readonly process: Process
  readonly handler: DatagramHandler<Datagram>
}

/** A frame that has set out. */
interface Sent {
  readonly from: string
  readonly to: Address
  readonly label: Label | undefined
  readonly sentUs: number
}

/** Frames that stand alone. */
export class Datagrams {
  readonly #world: World
  readonly #link: (from: string, to: string) => Link
  /** By machine, and then by port. */
  readonly #bound = new Map<string, Map<string, Bound>>()

  constructor(world: World, link: (from: string, to: string) => Link) {
    this.#world = world
    this.#link = link
  }

  bind(process: Process, port: string, handler: DatagramHandler<Datagram>): () => void {
    const machine = process.machine.name
    const ports = this.#bound.get(machine) ?? new Map<string, Bound>()
    this.#bound.set(machine, ports)
    if (ports.has(port)) throw new Error(`the port ${machine}:${port} is taken`)
    const bound = { process, handler }
    ports.set(port, bound)
    const unbind = () => {
      if (ports.get(port) === bound) ports.delete(port)
    }
    process.onEnd(unbind)
    return unbind
  }

  send(process: Process, to: Address, payload: Datagram, label: Label | undefined): void {
    if (!process.alive) return
    const from = process.machine.name
    const flight: Sent = { from, to, label, sentUs: this.#world.nowUs }
    const link = this.#link(from, to.machine)
    const fate = link.fate(label?.text)
    if (fate === 'lost') {
      this.#show(flight, undefined)
      return this.#tell(flight, 'lost')
    }
    const content = fate.corrupt === undefined ? payload : corrupted(payload, fate.corrupt)
    if (content === undefined) return this.#tell(flight, 'lost')
    const detail = content instanceof Uint8Array ? digestOf(content) : hashText(to.port)
    const arrive = () => this.#arrive(flight, content)
    if (link.isClogged) link.whenOpen(false, () => this.#leave(link, flight, fate.delaysUs, detail, arrive))
    else this.#leave(link, flight, fate.delaysUs, detail, arrive)
  }

  #leave(link: Link, flight: Sent, delaysUs: readonly number[], detail: number, arrive: () => void): void {
    for (const delayUs of delaysUs) {
      this.#show(flight, this.#world.nowUs + delayUs)
      link.travel(delayUs, DATAGRAM, detail, arrive)
    }
  }

  #arrive(flight: Sent, content: Datagram): void {
    const { from, to } = flight
    const bound = this.#bound.get(to.machine)?.get(to.port)
    this.#tell(flight, bound === undefined ? 'lost' : 'arrived')
    bound?.process.turnWith('input', bound.handler, content, from)
  }

  #show({ from, to, label, sentUs }: Sent, arriveUs: number | undefined): void {
    const { onFlight } = this.#world.network
    if (onFlight === undefined) return
    const { text, token } = label ?? {}
    onFlight({ from, to: to.machine, label: text, token, sentUs, arriveUs })
  }

  #tell({ from, to, label, sentUs }: Sent, outcome: 'arrived' | 'lost'): void {
    if (label === undefined) return
    const token = label.token === undefined ? {} : { token: label.token }
    const { text } = label
    this.#world.timeline.add({ kind: 'message', from, to: to.machine, label: text, ...token, sentUs, outcome })
  }
}

const DATAGRAM = hashText('datagram')

/** One bit flipped, or the end cut off. Undefined: the receiver's checksum would not let it through. */
function corrupted(payload: Datagram, draw: number): Uint8Array | undefined {
  if (!(payload instanceof Uint8Array) || payload.length === 0) return undefined
  const place = (draw >>> 1) % (payload.length * 8)
  if ((draw & 1) === 0) return payload.slice(0, place >>> 3)
  const copy = payload.slice()
  copy[place >>> 3] = (copy[place >>> 3] as number) ^ (1 << (place & 7))
  return copy
}
