import type { EndReason, Event, HoldId, Mode } from '@leasehold/core'
import type { Violations } from './violation.js'

/** A hold as a client sees it. */
export interface Belief {
  readonly client: string
  readonly hold: HoldId
  readonly locks: readonly { readonly name: string; readonly mode: Mode }[]
  /** Whether the client calls it held, by its own clocks, now. */
  held(): boolean
  /** Whether its clocks have kept to the bound so far. */
  clocksKept(): boolean
}

const WITHOUT_WARNING: readonly EndReason[] = ['stolen', 'moved', 'operator', 'death']

/** When a lock is granted, nobody else still calls it held who should have known better. */
export class BeliefChecks {
  private readonly beliefs = new Map<HoldId, Belief>()
  /** Ends that no client can foresee. */
  private readonly surprised = new Set<HoldId>()
  enabled = true

  constructor(private readonly violations: Violations) {}

  add(belief: Belief): void {
    this.beliefs.set(belief.hold, belief)
  }

  drop(hold: HoldId): void {
    this.beliefs.delete(hold)
    this.surprised.delete(hold)
  }

  clear(): void {
    this.beliefs.clear()
    this.surprised.clear()
  }

  entry(events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === 'freed' && WITHOUT_WARNING.includes(event.reason)) this.surprised.add(event.hold)
      if (event.kind !== 'held' || !this.enabled) continue
      for (const lock of event.grant.locks) this.granted(event.grant.hold, lock.name, lock.mode)
    }
  }

  private granted(hold: HoldId, name: string, mode: Mode): void {
    for (const belief of this.beliefs.values()) {
      if (belief.hold === hold || this.surprised.has(belief.hold)) continue
      const other = belief.locks.find((lock) => lock.name === name)
      if (!other || (mode !== 'exclusive' && other.mode !== 'exclusive')) continue
      if (!belief.clocksKept() || !belief.held()) continue
      this.violations.report(
        'I5',
        `${belief.client} calls hold ${belief.hold} of ${name} held while ${hold} is granted`,
      )
    }
  }
}
