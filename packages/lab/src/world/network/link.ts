import { hashText, longTail, PER_MILLION, type RandomStream, scaled } from '../random.js'
import type { World } from '../world.js'

/** How a directed link treats what is sent over it. Chances are per million. */
export interface LinkProfile {
  /** Delay: `minUs`, plus a draw with mean `tailUs` and a long tail. */
  minUs: number
  tailUs: number
  lossPpm: number
  duplicatePpm: number
  /** A double arrives up to this much later. */
  duplicateWithinUs: number
  /** An extra delay of up to `reorderWithinUs`, so that later frames overtake. */
  reorderPpm: number
  reorderWithinUs: number
  /** Half of the corrupt frames have a flipped bit, half are cut short. Streams break instead. */
  corruptPpm: number
  /** Frames that may be under way at once; more are dropped. Streams wait instead. */
  queueMax: number
  /** A lost segment of a stream comes this much later. */
  retransmitUs: number
}

export const CALM: LinkProfile = {
  minUs: 5_000,
  tailUs: 0,
  lossPpm: 0,
  duplicatePpm: 0,
  duplicateWithinUs: 1_000_000,
  reorderPpm: 0,
  reorderWithinUs: 100_000,
  corruptPpm: 0,
  queueMax: 10_000,
  retransmitUs: 200_000,
}

/** Between processes of one machine: never cut, never lossy. */
export const LOOPBACK: LinkProfile = { ...CALM, minUs: 50 }

interface Hold {
  left: number
  readonly forUs: number
  readonly matches: (label: string | undefined) => boolean
}

/** What became of a frame. */
export type Fate = { readonly delaysUs: readonly number[]; readonly corrupt: number | undefined } | 'lost'

/**
 * One direction between two machines. The draws of the n-th frame depend on n alone, so that a switched-off fault does
 * not shift those of another one.
 */
export class Link {
  readonly from: string
  readonly to: string
  /** For the trace. */
  readonly id: number
  readonly profile: LinkProfile
  readonly #world: World
  readonly #draws: Record<'delay' | 'loss' | 'double' | 'reorder' | 'corrupt', RandomStream>
  readonly #holds: Hold[] = []
  #waiting: (() => void)[] = []
  #cuts = 0
  #clogs = 0
  #sent = 0
  #underWay = 0

  constructor(world: World, from: string, to: string, profile: LinkProfile) {
    const name = `${from}>${to}`
    this.#world = world
    this.from = from
    this.to = to
    this.id = hashText(name)
    this.profile = { ...profile }
    const draws = (concern: string) => world.stream(`network.${concern}`, name)
    this.#draws = {
      delay: draws('delay'),
      loss: draws('loss'),
      double: draws('double'),
      reorder: draws('reorder'),
      corrupt: draws('corrupt'),
    }
  }

  get isCut(): boolean {
    return this.#cuts > 0
  }

  get isClogged(): boolean {
    return this.#clogs > 0
  }

  /** Frames that were handed to it. */
  get sent(): number {
    return this.#sent
  }

  // --- Faults ---

  /** Nothing gets through until the returned function is called. What is under way still arrives. */
  cut(): () => void {
    this.#cuts++
    return once(() => {
      this.#cuts--
      this.#opened()
    })
  }

  /** All messages wait, and continue in order when the returned function is called. */
  clog(): () => void {
    this.#clogs++
    return once(() => {
      this.#clogs--
      this.#opened()
    })
  }

  /** Changes the profile until the returned function is called. */
  change(part: Partial<LinkProfile>): () => void {
    const before = { ...this.profile }
    Object.assign(this.profile, part)
    return once(() => {
      for (const key of Object.keys(part) as (keyof LinkProfile)[]) this.profile[key] = before[key]
    })
  }

  /** The next `count` frames (whose label matches) take `forUs` longer; others pass them. */
  holdNext(forUs: number, count = 1, matches: (label: string | undefined) => boolean = () => true): void {
    this.#world.network.holds()
    this.#holds.push({ left: count, forUs, matches })
  }

  // --- For the network ---

  /** @internal Decides over a datagram. */
  fate(label: string | undefined): Fate {
    const n = this.#sent++
    const { profile } = this
    const heldUs = this.#heldUs(label)
    if (this.isCut || this.#underWay >= profile.queueMax) return 'lost'
    const { loss, double, corrupt } = this.#draws
    if (hits(loss, n, profile.lossPpm)) return 'lost'
    const delaysUs = [this.#delayUs(n) + this.#reorderUs(n) + heldUs]
    if (hits(double, 2 * n, profile.duplicatePpm)) {
      delaysUs.push((delaysUs[0] as number) + scaled(double.at(2 * n + 1), profile.duplicateWithinUs) + 1)
    }
    return { delaysUs, corrupt: hits(corrupt, 2 * n, profile.corruptPpm) ? corrupt.at(2 * n + 1) : undefined }
  }

  /** @internal Delay of a segment of a stream, which is never lost; or that the stream breaks. */
  segmentUs(label: string | undefined): number | 'broken' {
    const n = this.#sent++
    const { profile } = this
    if (hits(this.#draws.corrupt, 2 * n, profile.corruptPpm)) return 'broken'
    const isLost = hits(this.#draws.loss, n, profile.lossPpm)
    return this.#delayUs(n) + (isLost ? profile.retransmitUs : 0) + this.#heldUs(label)
  }

  /** @internal Runs `go` now, or when the link is open again, in order. `cuts`: a cut makes it wait as well. */
  whenOpen(cuts: boolean, go: () => void): void {
    if (this.isClogged || (cuts && this.isCut)) {
      if (this.#waiting.length >= WAITING_MAX)
        throw new Error(`more than ${WAITING_MAX} frames wait for ${this.from}>${this.to}`)
      this.#waiting.push(go)
    } else go()
  }

  /** @internal Something is under way for `delayUs`. */
  travel(delayUs: number, kind: number, detail: number, arrive: () => void): void {
    this.#underWay++
    this.#world.plan(this.#world.nowUs + delayUs, this.id, kind, detail, () => {
      this.#underWay--
      arrive()
    })
  }

  #opened(): void {
    if (this.isCut || this.isClogged) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const go of waiting) go()
  }

  #delayUs(n: number): number {
    const { minUs, tailUs } = this.profile
    return tailUs === 0 ? minUs : minUs + longTail(this.#draws.delay.at(n), tailUs)
  }

  #reorderUs(n: number): number {
    const { reorderPpm, reorderWithinUs } = this.profile
    if (!hits(this.#draws.reorder, 2 * n, reorderPpm)) return 0
    return scaled(this.#draws.reorder.at(2 * n + 1), reorderWithinUs)
  }

  #heldUs(label: string | undefined): number {
    if (this.#holds.length === 0) return 0
    const i = this.#holds.findIndex((hold) => hold.matches(label))
    const hold = this.#holds[i]
    if (hold === undefined) return 0
    if (--hold.left === 0) this.#holds.splice(i, 1)
    return hold.forUs
  }
}

const WAITING_MAX = 1_000_000

/** Whether the `n`-th draw falls below the chance. What cannot happen is not drawn: draws go by number, so none is shifted. */
function hits(draws: RandomStream, n: number, perMillion: number): boolean {
  return perMillion > 0 && scaled(draws.at(n), PER_MILLION) < perMillion
}

function once(action: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    action()
  }
}
