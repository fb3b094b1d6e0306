import { type Configure, floorAt, LEVEL_FLOOR, LEVEL_MAX, type Serial } from '@leasehold/core'
import type { NodeId } from '@leasehold/raft'
import type { MemberInfo } from '../cluster-meta.js'
import type { Clock, Logger } from '../platform.js'

/** Ticks between a follower's announcements of the feature level that it knows, while the current level is lower. */
const ANNOUNCE_TICKS = 20

export interface TermConfigurationOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly self: NodeId
  /** Whether to use counter floors. Without them, tokens start at 1. */
  readonly enabled: boolean
}

/**
 * The configuration that a leader proposes in each term: the counter floor of its wall clock, and the feature level that all
 * members know. The floor precedes every other command of the term, so a leader whose log lost earlier entries does not
 * grant their tokens again.
 */
export class TermConfiguration {
  readonly #options: TermConfigurationOptions
  /** Highest feature level that each other member has announced since this one started. */
  readonly #levels = new Map<NodeId, number>()
  /** The highest level that was proposed in the current term, and whether a floor was. */
  #proposedLevel = 0
  #proposedFloor = false
  #ticks = 0
  #warned = false

  constructor(options: TermConfigurationOptions) {
    this.#options = options
  }

  /** Returns the command for the first entry of a term; undefined when nothing changes. `level`: of the applied state. */
  opening(level: number, members: readonly MemberInfo[]): Configure | undefined {
    this.#proposedLevel = 0
    this.#proposedFloor = false
    return this.#propose(level, this.#reachable(level, members))
  }

  /** Returns the command to propose after the first entry: an earlier leader may have raised the level meanwhile. */
  following(level: number): Configure | undefined {
    return this.#proposedFloor ? undefined : this.#propose(level, level)
  }

  /** Returns the command to propose after a member has announced a level. */
  raised(level: number, members: readonly MemberInfo[]): Configure | undefined {
    const next = this.#reachable(level, members)
    return next > Math.max(level, this.#proposedLevel) ? this.#propose(level, next) : undefined
  }

  /** Records the highest feature level that a member has announced. */
  announced(node: NodeId, level: number): void {
    this.#levels.set(node, level)
  }

  /** Counts a tick. Returns whether to announce the highest feature level to the leader now. */
  announces(leader: NodeId, level: number): boolean {
    if (level >= LEVEL_MAX || leader === 0 || leader === this.#options.self) return false
    return this.#ticks++ % ANNOUNCE_TICKS === 0
  }

  /** Returns the highest level that all members know, at least `level`. Without an announcement, a member knows level 1. */
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
