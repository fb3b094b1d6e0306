import type { World } from '../world/index.js'
import type { HeldBy } from './system.js'

/** One hold of a run. */
export interface HoldRecord {
  /** In the order of grants, from 1. */
  readonly number: number
  readonly client: string
  readonly lock: string
  readonly token: bigint | undefined
  /** When the client asked, and when it had it. */
  readonly askedUs: number
  readonly grantedUs: number
  /** When its client stopped calling it valid. */
  endedUs?: number
}

interface Watched {
  readonly record: HoldRecord
  readonly held: HeldBy
  readonly alive: () => boolean
}

/** How often validity is looked at when nothing else happens. */
const LOOK_US = 20_000

/**
 * The holds of all clients, inspected from outside after every event: which client calls which lock valid, by the algorithm's own rule and
 * its own clocks. A paused client still has what its clocks say.
 */
export class HoldBook {
  readonly records: HoldRecord[] = []
  /** Two valid holds of one lock at once: since when, and of whom. */
  readonly overlaps: {
    readonly atUs: number
    readonly lock: string
    readonly holds: readonly [HoldRecord, HoldRecord]
  }[] = []
  overlapUs = 0
  readonly #world: World
  readonly #watched = new Set<Watched>()
  #lastLookUs = 0
  #overlapping = false

  constructor(world: World) {
    this.#world = world
    world.afterEvent(() => this.#look())
  }

  /** Looks often enough until `untilUs`. */
  lookUntil(untilUs: number): void {
    if (this.#world.nowUs >= untilUs) return
    this.#world.after(LOOK_US, 'look', () => this.lookUntil(untilUs))
  }

  granted(client: string, lock: string, held: HeldBy, askedUs: number, alive: () => boolean): HoldRecord {
    const { nowUs, timeline } = this.#world
    const { token } = held
    const record = { number: this.records.length + 1, client, lock, token, askedUs, grantedUs: nowUs }
    this.records.push(record)
    const text = token === undefined ? {} : { token: String(token) }
    timeline.add({ kind: 'lease-begin', id: String(record.number), view: 'believed', who: client, lock, ...text })
    const watched = { record, held, alive }
    for (const other of this.#watched) {
      if (other.record.lock !== lock || other.record.client === client || !valid(other) || !valid(watched)) continue
      this.overlaps.push({ atUs: nowUs, lock, holds: [other.record, record] })
    }
    this.#watched.add(watched)
    return record
  }

  /** Its client has given it up. */
  over(record: HoldRecord, text: string): void {
    for (const watched of this.#watched) if (watched.record === record) this.#end(watched, text)
  }

  #look(): void {
    const { nowUs } = this.#world
    if (nowUs === this.#lastLookUs) return
    if (this.#overlapping) this.overlapUs += nowUs - this.#lastLookUs
    this.#lastLookUs = nowUs
    for (const watched of this.#watched) {
      if (!valid(watched))
        this.#end(watched, watched.alive() ? 'its lease has expired by its own clock' : 'its process is gone')
    }
    const locks = [...this.#watched].map(({ record }) => record.lock)
    this.#overlapping = new Set(locks).size < locks.length
  }

  #end(watched: Watched, text: string): void {
    this.#watched.delete(watched)
    watched.record.endedUs = this.#world.nowUs
    const { number, client } = watched.record
    this.#world.timeline.add({ kind: 'lease-end', id: String(number), who: client, text })
  }
}

function valid({ held, alive }: Watched): boolean {
  return alive() && held.isValid()
}
