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

/** Bytes, or a frozen plain object that nobody changes. Objects have a checksum, so a corrupt one never arrives. */
export type Datagram = Uint8Array | object

/** How a frame is named in the timeline; frames without a label are not in it. */
export interface Label {
  readonly text: string
  readonly token?: string
}

export type DatagramHandler<Payload> = (payload: Payload, from: string) => void

/** Frames that stand alone. */
export class Datagrams {
  readonly #world: World
  readonly #link: (from: string, to: string) => Link
  readonly #bound = new Map<string, { readonly process: Process; readonly handler: DatagramHandler<Datagram> }>()

  constructor(world: World, link: (from: string, to: string) => Link) {
    this.#world = world
    this.#link = link
  }

  bind(process: Process, port: string, handler: DatagramHandler<Datagram>): () => void {
    const key = keyOf({ machine: process.machine.name, port })
    if (this.#bound.has(key)) throw new Error(`the port ${key} is taken`)
    const bound = { process, handler }
    this.#bound.set(key, bound)
    const unbind = () => {
      if (this.#bound.get(key) === bound) this.#bound.delete(key)
    }
    process.onEnd(unbind)
    return unbind
  }

  send(process: Process, to: Address, payload: Datagram, label: Label | undefined): void {
    if (!process.alive) return
    const from = process.machine.name
    const link = this.#link(from, to.machine)
    const sentUs = this.#world.nowUs
    const fate = link.fate(label?.text)
    const show = (arriveUs: number | undefined) => {
      const { text, token } = label ?? {}
      this.#world.network.onFlight?.({ from, to: to.machine, label: text, token, sentUs, arriveUs })
    }
    const tell = (outcome: 'arrived' | 'lost') => {
      if (label === undefined) return
      const token = label.token === undefined ? {} : { token: label.token }
      const { text } = label
      this.#world.timeline.add({ kind: 'message', from, to: to.machine, label: text, ...token, sentUs, outcome })
    }
    if (fate === 'lost') {
      show(undefined)
      return tell('lost')
    }
    const content = fate.corrupt === undefined ? payload : corrupted(payload, fate.corrupt)
    if (content === undefined) return tell('lost')
    const detail = content instanceof Uint8Array ? digestOf(content) : hashText(to.port)
    const arrive = () => {
      const bound = this.#bound.get(keyOf(to))
      if (bound === undefined) return tell('lost')
      tell('arrived')
      bound.process.turn('input', () => bound.handler(content, from))
    }
    link.whenOpen(false, () => {
      for (const delayUs of fate.delaysUs) {
        show(this.#world.nowUs + delayUs)
        link.travel(delayUs, DATAGRAM, detail, arrive)
      }
    })
  }
}

const DATAGRAM = hashText('datagram')

function keyOf({ machine, port }: Address): string {
  return `${machine}:${port}`
}

/** One bit flipped, or the end cut off. Undefined: the receiver's checksum would not let it through. */
function corrupted(payload: Datagram, draw: number): Uint8Array | undefined {
  if (!(payload instanceof Uint8Array) || payload.length === 0) return undefined
  const place = (draw >>> 1) % (payload.length * 8)
  if ((draw & 1) === 0) return payload.slice(0, place >>> 3)
  const copy = payload.slice()
  copy[place >>> 3] = (copy[place >>> 3] as number) ^ (1 << (place & 7))
  return copy
}
