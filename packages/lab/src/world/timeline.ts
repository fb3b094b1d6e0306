/**
 * What happened, for people: pictures and JSON are made from it. Times are microseconds of the world. Names of actors are
 * those of machines, processes and resources. Tokens are decimal strings.
 */
export type Happening =
  /** A process changed: `up`, `down`, `paused`, `running`, or what it is to others (`leader`, `follower`). */
  | { readonly kind: 'process'; readonly who: string; readonly state: ProcessState; readonly text?: string }
  /** A fault that the schedule made. */
  | { readonly kind: 'fault'; readonly who: string; readonly text: string }
  /** A client's step: asks, has, gives up, loses, … */
  | {
      readonly kind: 'client'
      readonly who: string
      readonly text: string
      readonly lock?: string
      readonly token?: string
    }
  /** A message that was sent at `sentUs` and arrives now, or is lost. Only those that carry a label. */
  | {
      readonly kind: 'message'
      readonly from: string
      readonly to: string
      readonly label: string
      readonly token?: string
      readonly sentUs: number
      readonly outcome: 'arrived' | 'lost'
    }
  /** Something valid over a time: begins now; `lease-end` with the same id ends it. */
  | {
      readonly kind: 'lease-begin'
      readonly id: string
      /** Whose view: the client's own (`believed`), or that of the service (`granted`). */
      readonly view: 'believed' | 'granted'
      readonly who: string
      readonly lock: string
      readonly token?: string
      /** When it ends if nothing happens; for pictures of leases that are cut short. */
      readonly untilUs?: number
    }
  | { readonly kind: 'lease-end'; readonly id: string; readonly who: string; readonly text: string }
  /** An effect at a protected resource. */
  | {
      readonly kind: 'resource'
      readonly resource: string
      readonly by: string
      readonly action: 'open' | 'read' | 'write' | 'verify' | 'effect'
      readonly accepted: boolean
      readonly token?: string
      readonly mark?: string
      readonly value?: string
      readonly text?: string
    }
  /** A rule is broken; `who` are the actors involved. */
  | { readonly kind: 'violation'; readonly rule: string; readonly text: string; readonly who: readonly string[] }
  | { readonly kind: 'note'; readonly who?: string; readonly text: string }

export type ProcessState = 'up' | 'down' | 'paused' | 'running' | 'leader' | 'follower' | 'candidate'

export type TimelineEvent = Happening & { readonly atUs: number }

/** Events that are kept; later ones are counted only. */
const EVENTS_MAX = 100_000

/** Collects what happens. Not part of the trace: looking on changes nothing. */
export class Timeline {
  readonly events: TimelineEvent[] = []
  /** Events beyond the bound. */
  dropped = 0
  /** A long exploration switches it off. */
  enabled = true
  readonly #clock: { readonly nowUs: number }
  readonly #listeners = new Set<(event: TimelineEvent) => void>()

  constructor(clock: { readonly nowUs: number }) {
    this.#clock = clock
  }

  add(happening: Happening): void {
    if (!this.enabled) return
    const event: TimelineEvent = { atUs: this.#clock.nowUs, ...happening }
    if (this.events.length < EVENTS_MAX) this.events.push(event)
    else this.dropped++
    for (const listener of this.#listeners) listener(event)
  }

  onEvent(listener: (event: TimelineEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
