import type { Flight, World } from '@leasehold/lab/world/index'
import { tokenText } from './token-text.js'

/** What a frame is about. */
export type FlightKind = 'members' | 'client' | 'grant' | 'resource' | 'refusal'

/** A frame on its way, as it is drawn. */
export interface Dot {
  readonly number: number
  readonly from: string
  readonly to: string
  readonly kind: FlightKind
  readonly label: string | undefined
  readonly token: string | undefined
  readonly sentUs: number
  readonly arriveUs: number | undefined
  /** On the clock of the picture, in milliseconds. */
  readonly shownMs: number
}

/** Dots that are drawn at once. */
const DOTS_MAX = 150
/** Frames without a meaning for people: one per direction and so many milliseconds of the picture. */
const THIN_MS = 220
/** A frame is drawn for this long at least, though it is faster: five milliseconds cannot be seen. */
export const SHOWN_MS = 520

/** Collects the frames that a picture shows. */
export class Flights {
  dots: Dot[] = []
  /** Frames with a meaning, ever. */
  told = 0
  #count = 0
  readonly #last = new Map<string, number>()

  readonly #pictureMs: () => number

  constructor(world: World, pictureMs: () => number) {
    this.#pictureMs = pictureMs
    world.network.onFlight = (flight) => this.#add(flight)
  }

  #add(flight: Flight): void {
    const { from, to, label, token } = flight
    if (label !== undefined) this.told++
    const shownMs = this.#pictureMs()
    const kind = kindOf(flight)
    const way = `${from}>${to}>${label ?? ''}`
    const isThinned = label === undefined || label === 'renew'
    if (isThinned && shownMs - (this.#last.get(way) ?? -THIN_MS) < THIN_MS) return
    this.#last.set(way, shownMs)
    if (this.dots.length >= DOTS_MAX) {
      if (isThinned) return
      this.dots.shift()
    }
    this.dots.push({
      number: ++this.#count,
      from,
      to,
      kind,
      label,
      token: token === undefined ? undefined : tokenText(token),
      sentUs: flight.sentUs,
      arriveUs: flight.arriveUs,
      shownMs,
    })
  }

  /** Forgets those that have been shown to their end. */
  prune(nowUs: number): void {
    const now = this.#pictureMs()
    this.dots = this.dots.filter((dot) => {
      return progressOf(dot, nowUs, now) < 1 && now - dot.shownMs < 3_600_000
    })
  }
}

/** How far a dot is, from 0 to 1: by the world's time where that can be seen, else slower than it is. */
export function progressOf(dot: Dot, nowUs: number, pictureMs: number): number {
  const shown = (pictureMs - dot.shownMs) / SHOWN_MS
  // What is lost vanishes on the way.
  if (dot.arriveUs === undefined) return shown < 0.55 ? shown : 1
  const flown = dot.arriveUs <= dot.sentUs ? 1 : (nowUs - dot.sentUs) / (dot.arriveUs - dot.sentUs)
  return Math.min(1, flown, shown)
}

function kindOf({ label, to, from }: Flight): FlightKind {
  if (label === undefined) return isClient(from) || isClient(to) ? 'client' : 'members'
  if (label.startsWith('granted') || label === 'OK') return 'grant'
  if (label === 'refused' || label === 'nil') return 'refusal'
  if (/^(read|write|ok|effect)/.test(label)) return 'resource'
  return 'client'
}

function isClient(name: string): boolean {
  return /^C\d$/.test(name)
}
