import { type Event, type HeldLock, type HoldId, type LockState, tokenOf } from '@leasehold/core'
import { TokenPairs } from './token-pairs.js'
import type { Violations } from './violation.js'

interface Standing {
  /** Token of the last shared generation. */
  generation: bigint
  readonly holds: Map<HoldId, HeldLock>
}

/**
 * The holders of each lock, from nothing but the events that watchers see, and the tokens of all time: it shares no code with the
 * lock state that it judges.
 */
export class GrantChecker {
  readonly #locks = new Map<string, Standing>()
  #moved: Map<string, bigint> = new Map()
  grants = 0
  #incarnation: number

  readonly #violations: Violations
  #epoch: number

  constructor(
    violations: Violations,
    epoch: number,
    /** Of all services that follow each other. */
    readonly pairs = new TokenPairs(),
  ) {
    this.#violations = violations
    this.#epoch = epoch
    this.#incarnation = pairs.begins()
  }

  /**
   * The service begins again, from a backup or from nothing: all holds end, tokens stay. The persistent holds that
   * `state` has were granted again with new tokens.
   */
  restored(state: LockState): void {
    this.#epoch = state.epoch
    this.#incarnation = this.pairs.begins()
    for (const standing of this.#locks.values()) {
      standing.holds.clear()
      standing.generation = 0n
    }
    for (const { id, held } of state.machine.holds.values()) for (const lock of held) this.#held(id, lock)
  }

  /** The events of one entry. */
  entry(events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === 'held') {
        this.grants++
        for (const lock of event.grant.locks) this.#held(event.grant.hold, lock)
      } else if (event.kind === 'freed') {
        for (const lock of event.locks) this.#freed(event.hold, lock, event.reason === 'moved')
      }
    }
    this.#moved.clear()
  }

  holdersOf(name: string): ReadonlyMap<HoldId, HeldLock> {
    return this.#standing(name).holds
  }

  #held(hold: HoldId, lock: HeldLock): void {
    const standing = this.#standing(lock.name)
    const others = [...standing.holds.values()]
    const token = tokenOf(this.#epoch, lock.token)
    const say = (invariant: 'I1' | 'I2', text: string): void =>
      this.#violations.report(invariant, `lock ${lock.name}, hold ${hold}: ${text}`)
    if (lock.mode === 'exclusive' && others.length > 0) say('I1', `granted while ${others.length} hold it`)
    if (lock.mode === 'shared' && others.some((other) => other.mode !== 'shared'))
      say('I1', 'shared beside an exclusive hold')
    if (typeof lock.mode === 'object') this.#permit(lock, others, say)
    if (lock.mode === 'shared') {
      const [other] = others
      const generation = other && tokenOf(this.#epoch, other.token)
      // When the only reader has moved, its generation continues.
      const ended = generation === undefined && this.#moved.get(lock.name) !== token && token === standing.generation
      if (generation !== undefined && token !== generation)
        say('I2', `token ${token} in the generation of ${generation}`)
      else if (ended) say('I2', `token ${token} of a generation that has ended`)
      else this.#paired(hold, lock, token)
      standing.generation = token
    } else this.#paired(hold, lock, token)
    standing.holds.set(hold, lock)
  }

  #paired(hold: HoldId, { name, mode }: HeldLock, token: bigint): void {
    const incarnation = this.#incarnation
    const fault = this.pairs.granted({ lock: name, token, mode, hold: `hold ${hold}`, incarnation })
    if (fault) this.#violations.report(fault.rule === 'twice' ? 'I15' : 'I2', fault.text)
  }

  #permit(lock: HeldLock, others: readonly HeldLock[], say: (invariant: 'I1', text: string) => void): void {
    const { permits } = lock.mode as { permits: number }
    if (others.length >= permits) say('I1', `permit ${others.length + 1} of ${permits}`)
    if (lock.slot === undefined || lock.slot < 0 || lock.slot >= permits) say('I1', `slot ${lock.slot} of ${permits}`)
    if (others.some((other) => other.slot === lock.slot)) say('I1', `slot ${lock.slot} is taken`)
  }

  #freed(hold: HoldId, lock: HeldLock, moved: boolean): void {
    const standing = this.#standing(lock.name)
    if (!standing.holds.delete(hold))
      this.#violations.report('I1', `lock ${lock.name}: hold ${hold} is freed, and did not hold`)
    if (moved) this.#moved.set(lock.name, tokenOf(this.#epoch, lock.token))
  }

  #standing(name: string): Standing {
    let standing = this.#locks.get(name)
    if (!standing) {
      standing = { generation: 0n, holds: new Map() }
      this.#locks.set(name, standing)
    }
    return standing
  }
}
