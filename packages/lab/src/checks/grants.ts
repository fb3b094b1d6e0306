import { type Event, type HeldLock, type HoldId, type Token, tokenOf } from '@leasehold/core'
import type { Violations } from './violation.js'

interface Standing {
  /** Greatest token that was ever granted. */
  last: bigint
  readonly holds: Map<HoldId, HeldLock>
}

/**
 * Who holds what, and the tokens of all time, from nothing but the events that watchers see: it shares no code with the
 * lock state that it judges.
 */
export class GrantChecks {
  private readonly locks = new Map<string, Standing>()
  private moved: Map<string, bigint> = new Map()
  grants = 0

  constructor(
    private readonly violations: Violations,
    private epoch: number,
  ) {}

  /** The service was restored: all holds are over, tokens stay. */
  restored(epoch: number): void {
    this.epoch = epoch
    for (const standing of this.locks.values()) standing.holds.clear()
  }

  /** The events of one entry. */
  entry(events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === 'held') {
        this.grants++
        for (const lock of event.grant.locks) this.held(event.grant.hold, lock)
      } else if (event.kind === 'freed') {
        for (const lock of event.locks) this.freed(event.hold, lock, event.reason === 'moved')
      }
    }
    this.moved.clear()
  }

  holdersOf(name: string): ReadonlyMap<HoldId, HeldLock> {
    return this.standing(name).holds
  }

  private held(hold: HoldId, lock: HeldLock): void {
    const standing = this.standing(lock.name)
    const others = [...standing.holds.values()]
    const token = tokenOf(this.epoch, lock.token)
    const say = (invariant: 'I1' | 'I2', text: string): void =>
      this.violations.report(invariant, `lock ${lock.name}, hold ${hold}: ${text}`)
    if (lock.mode === 'exclusive' && others.length > 0) say('I1', `granted while ${others.length} hold it`)
    if (lock.mode === 'shared' && others.some((other) => other.mode !== 'shared'))
      say('I1', 'shared beside an exclusive hold')
    if (typeof lock.mode === 'object') this.permit(lock, others, say)
    if (lock.mode === 'shared' && others.length > 0) {
      const generation = tokenOf(this.epoch, (others[0] as HeldLock).token)
      if (token !== generation) say('I2', `token ${token} in the generation of ${generation}`)
    } else if (lock.mode === 'shared' && this.moved.get(lock.name) === token) {
      // The only reader has moved: the generation goes on.
    } else if (token <= standing.last) say('I2', `token ${token} after ${standing.last}`)
    if (token > standing.last) standing.last = token
    standing.holds.set(hold, lock)
  }

  private permit(lock: HeldLock, others: readonly HeldLock[], say: (invariant: 'I1', text: string) => void): void {
    const { permits } = lock.mode as { permits: number }
    if (others.length >= permits) say('I1', `permit ${others.length + 1} of ${permits}`)
    if (lock.slot === undefined || lock.slot < 0 || lock.slot >= permits) say('I1', `slot ${lock.slot} of ${permits}`)
    if (others.some((other) => other.slot === lock.slot)) say('I1', `slot ${lock.slot} is taken`)
  }

  private freed(hold: HoldId, lock: HeldLock, moved: boolean): void {
    const standing = this.standing(lock.name)
    if (!standing.holds.delete(hold))
      this.violations.report('I1', `lock ${lock.name}: hold ${hold} is freed, and did not hold`)
    if (moved) this.moved.set(lock.name, tokenOf(this.epoch, lock.token) as Token)
  }

  private standing(name: string): Standing {
    let standing = this.locks.get(name)
    if (!standing) {
      standing = { last: -1n, holds: new Map() }
      this.locks.set(name, standing)
    }
    return standing
  }
}
