import { assert, type Command, type Index, type Refused, type Result } from '@leasehold/core'
import type { Entry, NodeId, Raft, Term } from '@leasehold/raft'
import { LeaderClock } from '../clock/leader-clock.js'
import type { PendingTimestamps } from '../clock/pending-timestamps.js'
import type { MemberInfo } from '../cluster-meta.js'
import type { Applier } from '../driver/applier.js'
import type { DeferredCalls } from '../driver/deferred-calls.js'
import { runGuarded } from '../driver/listeners.js'
import { Proposals } from '../driver/proposals.js'
import type { ReplicaSettings } from '../replica-options.js'
import { DeadSessions } from './dead-sessions.js'
import { Leadership } from './leadership.js'
import { TermConfiguration } from './term-configuration.js'

/** Entries that are proposed and not yet applied. */
const IN_FLIGHT_MAX = 256

export interface EntryProposerOptions {
  readonly settings: ReplicaSettings
  readonly raft: Raft
  readonly applier: Applier
  /** Timestamps of entries that are in the log and not yet applied. */
  readonly timestamps: PendingTimestamps
  /** Most bytes of commands in one entry. */
  readonly batchBytes: number
  readonly members: () => readonly MemberInfo[]
  readonly deferred: DeferredCalls
  /** Schedules a run of the loop. */
  readonly scheduleRun: () => void
  /** Runs the loop now: a deadline is due. */
  readonly due: () => void
}

/**
 * Proposes entries while this member leads: the first entry of its term, batches of commands, and entries that only move
 * time. Keeps the callbacks of commands until their entries are applied or leadership is lost.
 */
export class EntryProposer {
  readonly proposals = new Proposals()
  readonly #options: EntryProposerOptions
  readonly #termConfiguration: TermConfiguration
  readonly #deadSessions = new DeadSessions()
  #leadership: Leadership | undefined
  /** Consensus refused the open batch. The next event offers it again; a new run alone does not. */
  #refusedBatch = false
  #cancelDueTimer: (() => void) | undefined

  constructor(options: EntryProposerOptions) {
    this.#options = options
    const { platform, clockFloors } = options.settings
    this.#termConfiguration = new TermConfiguration({ ...platform, self: options.raft.id, enabled: clockFloors })
  }

  /** Whether this member leads, ready or not. */
  get isLeading(): boolean {
    return this.#leadership !== undefined
  }

  /** Whether this member leads and has applied the first entry of its term. */
  get isReady(): boolean {
    return this.#leadership?.ready === true
  }

  /** The term of this member's leadership; 0: it does not lead. */
  get term(): Term {
    return this.#leadership?.term ?? 0
  }

  /** Whether commands wait that consensus has not refused. */
  get hasOpenBatch(): boolean {
    return this.proposals.count > 0 && !this.#refusedBatch
  }

  /** Whether commands have no outcome yet. */
  get isWaiting(): boolean {
    return this.proposals.count > 0 || (this.#leadership?.pending.size ?? 0) > 0
  }

  get hasRoom(): boolean {
    return this.#options.raft.transferee === 0 && (this.#leadership?.pending.size ?? 0) < IN_FLIGHT_MAX
  }

  /** Advances the leader's clock, once per tick. */
  readClock(): void {
    this.#leadership?.clock.read(this.#options.settings.platform.clock.monotonicMs())
  }

  /** Proposes the open batch, or an empty entry if time must move. Returns false when there was nothing to propose. */
  closeBatch(): boolean {
    const leadership = this.#leadership
    if (!leadership?.ready || !this.hasRoom) return false
    const { settings, applier, raft, batchBytes } = this.#options
    const now = settings.platform.clock.monotonicMs()
    const { state } = applier
    if (this.proposals.count === 0 && !leadership.needsStamp(now, state.nextDeadline(), state.hasDeadlines))
      return false
    const at = leadership.stamp(now, state.now)
    const { data, batch } = this.proposals.close(at, batchBytes)
    const index = raft.propose([data])
    this.#refusedBatch = index === undefined
    if (index === undefined) this.proposals.reopen(batch)
    else leadership.proposed(index as Index, at, batch)
    return true
  }

  /** Whether consensus has ended this member's leadership; {@link EntryProposer.end} is to be called then. */
  get hasLostLeadership(): boolean {
    const { role, term } = this.#options.raft
    return this.#leadership !== undefined && (role !== 'leader' || this.#leadership.term !== term)
  }

  /** Starts a term in which this member leads, with the first entry of the term. Returns whether it has proposed one. */
  begin(): boolean {
    const { settings, raft, applier, timestamps, batchBytes, members } = this.#options
    const { role, term } = raft
    if (role !== 'leader' || this.#leadership) return false
    const { platform, tickMs } = settings
    const base = timestamps.highest(applier.state.now)
    const now = platform.clock.monotonicMs()
    const clock = new LeaderClock(base, now, tickMs)
    const first = new Proposals()
    const command = this.#termConfiguration.opening(applier.state.level, members())
    if (command !== undefined) first.addFirst(command)
    const opening = raft.propose([first.close(clock.stamp(now, base), batchBytes).data])
    assert(opening !== undefined, () => `the leader of term ${term} did not take its first entry`)
    this.#leadership = new Leadership(term, opening as Index, clock, base)
    this.#refusedBatch = false
    platform.log.info('leads', { term, index: opening })
    return true
  }

  /** Runs the callbacks of an applied entry. Returns whether it is the entry that makes this member ready. */
  applied({ index, term }: Entry, results: readonly Result[]): boolean {
    const leadership = this.#leadership
    if (!leadership) return false
    this.#answer(leadership.take(index as Index), index, results)
    if (index !== leadership.opening || term !== leadership.term) return false
    leadership.ready = true
    const { settings, applier } = this.#options
    if (settings.endLocalSessions) {
      for (const command of this.#deadSessions.closeCommands(applier.state)) this.proposals.addFirst(command)
    }
    // Before every other command that may grant.
    this.#configure(this.#termConfiguration.following(applier.state.level))
    return true
  }

  #answer(batch: ReturnType<Leadership['take']>, index: number, results: readonly Result[]): void {
    if (!batch) return
    assert(
      batch.length === results.length,
      () => `${results.length} results for ${batch.length} commands of entry ${index}`,
    )
    const { log } = this.#options.settings.platform
    batch.forEach(({ answer }, i) => runGuarded(log, () => answer(results[i] as Result)))
  }

  /** Ends leadership: commands that were proposed get `lost`, those that were not get `refusal`. */
  end(lost: Refused, refusal: Refused): void {
    const { deferred } = this.#options
    const leadership = this.#leadership
    this.#leadership = undefined
    for (const batch of leadership?.pending.values() ?? []) {
      for (const { answer } of batch) deferred.add(() => answer(lost))
    }
    for (const answer of this.proposals.drain()) deferred.add(() => answer(refusal))
  }

  /** Sets a timer for a deadline of the lock state that comes before the next tick. */
  armDueTimer(): void {
    this.cancelDueTimer()
    if (!this.#leadership?.ready || this.#refusedBatch) return
    const { settings, applier, due: run } = this.#options
    const due = applier.state.nextDeadline()
    if (due === undefined || this.#leadership.lastStamp >= due) return
    const { platform, tickMs } = settings
    const delay = Math.max(1, due - this.#leadership.clock.read(platform.clock.monotonicMs()))
    if (delay >= tickMs) return
    this.#cancelDueTimer = platform.clock.after(delay, () => {
      this.#cancelDueTimer = undefined
      run()
    })
  }

  cancelDueTimer(): void {
    this.#cancelDueTimer?.()
    this.#cancelDueTimer = undefined
  }

  /** Whether to send the highest feature level to the leader. To be called once per tick. */
  announcesLevel(): boolean {
    return this.#termConfiguration.announces(this.#options.raft.leader, this.#options.applier.state.level)
  }

  /** Another member has sent the highest feature level that it knows. */
  receiveLevel(from: NodeId, level: number): void {
    this.#termConfiguration.announced(from, level)
    if (this.isReady) {
      this.#configure(this.#termConfiguration.raised(this.#options.applier.state.level, this.#options.members()))
    }
  }

  /** Puts a command of this leader before all others. */
  #configure(command: Command | undefined): void {
    if (command === undefined) return
    this.proposals.addFirst(command)
    this.#options.scheduleRun()
  }
}
