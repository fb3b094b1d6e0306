import type { EndReason, Event, HoldId, Mode } from '@leasehold/core'
import type { Violations } from './violation.js'

/** A hold as a client sees it. */
export interface Belief {
  readonly client: string
  readonly hold: HoldId
  readonly locks: readonly { readonly name: string; readonly mode: Mode }[]
  /** How long after a renewal was sent its client calls it held, by its own clocks. */
  readonly leaseMs: number
  /** Whether the client calls it held, by its own clocks, now. */
  held(): boolean
  /** Whether its clocks have kept to the bound so far. */
  clocksKept(): boolean
}

const WITHOUT_WARNING: readonly EndReason[] = ['stolen', 'moved', 'operator', 'death']
/** A client's clocks and the true time differ by at most so much. */
const CLOCK_BOUND = 1.06

interface End {
  readonly atMs: number
  readonly reason: EndReason
  /** Another client has been granted one of its locks since. */
  passedOn: boolean
}

/**
 * When a lock is granted, no other client that could know of the end still calls it held; nor does any client later that has
 * stopped calling it held. An end without warning is heard of with the next renewal that is acknowledged: without one the
 * client's own deadline comes, so that this long after its end no client calls the hold held any more.
 */
export class BeliefChecker {
  readonly #beliefs = new Map<HoldId, Belief>()
  readonly #ends = new Map<HoldId, End>()
  /** Ends that no client can foresee. */
  readonly #surprised = new Set<HoldId>()
  enabled = true

  readonly #violations: Violations
  readonly #nowMs: () => number

  constructor(violations: Violations, nowMs: () => number) {
    this.#violations = violations
    this.#nowMs = nowMs
  }

  add(belief: Belief): void {
    this.#beliefs.set(belief.hold, belief)
  }

  drop(hold: HoldId): void {
    this.#beliefs.delete(hold)
    this.#surprised.delete(hold)
  }

  clear(): void {
    this.#beliefs.clear()
    this.#surprised.clear()
    this.#ends.clear()
  }

  entry(events: readonly Event[]): void {
    if (this.enabled) for (const belief of this.#beliefs.values()) this.#ended(belief)
    for (const event of events) {
      if (event.kind === 'freed') {
        if (WITHOUT_WARNING.includes(event.reason)) this.#surprised.add(event.hold)
        this.#ends.set(event.hold, { atMs: this.#nowMs(), reason: event.reason, passedOn: false })
      }
      if (event.kind !== 'held' || !this.enabled) continue
      for (const lock of event.grant.locks) this.#granted(event.grant.hold, lock.name, lock.mode)
    }
  }

  #ended(belief: Belief): void {
    const end = this.#ends.get(belief.hold)
    if (!end) return
    const sinceMs = this.#nowMs() - end.atMs
    const knows = end.reason === 'expired' ? end.passedOn : sinceMs > belief.leaseMs * CLOCK_BOUND
    if (!knows || !belief.clocksKept() || !belief.held()) return
    const names = belief.locks.map(({ name }) => name).join(', ')
    this.#violations.report(
      'I5',
      `${belief.client} calls hold ${belief.hold} of ${names} held ${Math.round(sinceMs)} ms after its end (${end.reason})`,
    )
  }

  #granted(hold: HoldId, name: string, mode: Mode): void {
    for (const belief of this.#beliefs.values()) {
      if (belief.hold === hold || this.#surprised.has(belief.hold)) continue
      const other = belief.locks.find((lock) => lock.name === name)
      if (!other || (mode !== 'exclusive' && other.mode !== 'exclusive')) continue
      const end = this.#ends.get(belief.hold)
      if (end) end.passedOn = true
      if (!belief.clocksKept() || !belief.held()) continue
      this.#violations.report(
        'I5',
        `${belief.client} calls hold ${belief.hold} of ${name} held while ${hold} is granted`,
      )
    }
  }
}
