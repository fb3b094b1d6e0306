import { type Configure, floorAt, LEVEL_FLOOR, LEVEL_MAX, type Serial } from '@leasehold/core'
import type { NodeId } from '@leasehold/raft'
import type { MemberInfo } from '../cluster-meta.js'
import type { Clock, Logger } from '../platform.js'

/** While the feature level is below the highest, a follower announces which one it knows once in so many ticks. */
const ANNOUNCE_TICKS = 20

export interface TermConfigurationOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly self: NodeId
  /** False: no floors, tokens start at 1. */
  readonly enabled: boolean
}

/**
 * What a leader asks of the lock state for itself in each term: the floor of its wall clock, and the feature level that all
 * members know. The floor comes before every other command of the term, so a leader whose log lost entries of an earlier
 * life does not grant their tokens again.
 */
export class TermConfiguration {
  readonly #options: TermConfigurationOptions
  /** Highest feature level that each other member has announced since this one started. */
  readonly #levels = new Map<NodeId, number>()
  /** In the present term: the highest level that was proposed, and whether a floor was. */
  #proposedLevel = 0
  #proposedFloor = false
  #ticks = 0
  #warned = false

  constructor(options: TermConfigurationOptions) {
    this.#options = options
  }

  /** What a new leader proposes with its first entry; undefined: nothing. `level`: of the applied state. */
  opening(level: number, members: readonly MemberInfo[]): Configure | undefined {
    this.#proposedLevel = 0
    this.#proposedFloor = false
    return this.#propose(level, this.#reachable(level, members))
  }

  /** The same once that entry is applied: an earlier leader's entry may have raised the level meanwhile. */
  following(level: number): Configure | undefined {
    return this.#proposedFloor ? undefined : this.#propose(level, level)
  }

  /** What a leader proposes because more members have announced a level. */
  raised(level: number, members: readonly MemberInfo[]): Configure | undefined {
    const next = this.#reachable(level, members)
    return next > Math.max(level, this.#proposedLevel) ? this.#propose(level, next) : undefined
  }

  /** A member has announced the highest feature level that it knows. */
  announced(node: NodeId, level: number): void {
    this.#levels.set(node, level)
  }

  /** Runs once per tick. Whether to announce the highest feature level to the leader now. */
  announces(leader: NodeId, level: number): boolean {
    if (level >= LEVEL_MAX || leader === 0 || leader === this.#options.self) return false
    return this.#ticks++ % ANNOUNCE_TICKS === 0
  }

  /** The highest feature level that all members know, not below `level`. A member that has announced nothing knows level 1. */
  #reachable(level: number, members: readonly MemberInfo[]): number {
    if (level >= LEVEL_MAX) return level
    const others = members.filter(({ node }) => node !== this.#options.self)
    return Math.max(level, Math.min(LEVEL_MAX, ...others.map(({ node }) => this.#levels.get(node) ?? 1)))
  }

  #propose(level: number, next: number): Configure | undefined {
    const floor = next >= LEVEL_FLOOR ? this.#floor() : undefined
    if (next === level && floor === undefined) return undefined
    this.#proposedLevel = next
    this.#proposedFloor = floor !== undefined
    if (next > level) this.#options.log.info('all members know the next feature level', { level: next })
    return { kind: 'configure', ...(next > level && { level: next }), ...(floor !== undefined && { floor }) }
  }

  #floor(): Serial | undefined {
    const { clock, log, enabled } = this.#options
    if (!enabled) return undefined
    const wallMs = clock.wallMs()
    const floor = floorAt(wallMs)
    if (floor === undefined && !this.#warned) {
      this.#warned = true
      log.warn('the wall clock is implausible: tokens are not raised to it, and could repeat after a loss of data', {
        clockMs: wallMs,
        hint: 'set the clock, and restart this member',
      })
    }
    return floor
  }
}
