import { assert } from './assert.js'
import { RaftState, type Role } from './raft-state.js'
import { type Effects, NO_EFFECTS, NOTHING, type PersistEffect } from './effects.js'
import { dispatch, readAsLeader } from './dispatch.js'
import { standForElection } from './election.js'
import { checkInvariants, type Watermarks, watermarksOf } from './invariants.js'
import { entryBytes, type Message, messageProblem } from './messages.js'
import type { RaftOptions } from './options.js'
import type { Progress } from './progress.js'
import { propose } from './proposals.js'
import { applyChange, changeProblem, maybeLeaveJoint } from './configuration-entries.js'
import { retire, successorOf, transferTo } from './leadership-transfer.js'
import { type RaftRules, STANDARD_RULES } from './rules.js'
import { broadcastHeartbeat, onArrivedSnapshot, type Proposal } from './replication.js'
import type {
  Configuration,
  ConfigurationChange,
  Entry,
  HardState,
  Index,
  NodeId,
  SnapshotMeta,
  Term,
} from './types.js'

export interface RaftStatus {
  readonly id: NodeId
  readonly role: Role
  readonly term: Term
  readonly vote: NodeId
  readonly leader: NodeId
  readonly commit: Index
  readonly applied: Index
  readonly last: Index
  readonly first: Index
  readonly configuration: Configuration
  readonly transferee: NodeId
  /** Of a leader, by peer. */
  readonly progress: ReadonlyMap<NodeId, Progress>
}

/** A write under way, and this member's own messages that wait for it. */
interface Pending {
  readonly sequence: number
  readonly own: readonly Message[]
}

/**
 * The consensus core of one member: inputs in, effects out. It has no clock, random source or I/O. The program calls an
 * input, then `takeEffects`; it writes, sends and applies what the effects name, and reports `persisted` and `applied`.
 * Local invariants are checked after each input. A broken one throws `RaftInvariantError`, and the member must stop.
 *
 * Source: Ongaro, *Consensus: Bridging Theory and Practice* (the thesis). Departures: docs/divergence.md.
 */
export class Raft {
  readonly #state: RaftState
  #lastHard: HardState
  #sequence = 0
  #pending: Pending[] = []
  #before: Watermarks

  constructor(options: RaftOptions, rules: RaftRules = STANDARD_RULES) {
    this.#state = new RaftState(options, rules)
    this.#lastHard = { term: this.#state.term, vote: this.#state.vote, commit: this.#state.log.committed }
    this.#before = watermarksOf(this.#state)
  }

  get id(): NodeId {
    return this.#state.id
  }
  get role(): Role {
    return this.#state.role
  }
  get term(): Term {
    return this.#state.term
  }
  get leader(): NodeId {
    return this.#state.leader
  }
  get commit(): Index {
    return this.#state.log.committed
  }
  get lastIndex(): Index {
    return this.#state.log.lastIndex
  }
  get configuration(): Configuration {
    return this.#state.configuration
  }
  get isLearner(): boolean {
    return this.#state.isLearner
  }
  /** Whether an entry of this term is committed. Before that, a leader does not know the commit index. */
  get hasCommittedInTerm(): boolean {
    return this.#state.hasCommittedInTerm
  }
  /** The voter that leadership is being transferred to; 0: none. */
  get transferee(): NodeId {
    return this.#state.transferee
  }
  /** The best voter to transfer leadership to, as the leader knows it; undefined if there is none. */
  get successor(): NodeId | undefined {
    return successorOf(this.#state)
  }

  /** The state inside, for tests only. */
  static stateOf(raft: Raft): RaftState {
    return raft.#state
  }

  get status(): RaftStatus {
    const state = this.#state
    return {
      id: state.id,
      role: state.role,
      term: state.term,
      vote: state.vote,
      leader: state.leader,
      commit: state.log.committed,
      applied: state.log.applied,
      last: state.log.lastIndex,
      first: state.log.firstIndex,
      configuration: state.configuration,
      transferee: state.transferee,
      progress: state.tracked.progress,
    }
  }

  entry(index: Index): Entry | undefined {
    return this.#state.log.entry(index)
  }

  termAt(index: Index): Term | undefined {
    return this.#state.log.termAt(index)
  }

  // --- inputs ---

  /** Advances the program's clock by one tick. */
  tick(): void {
    const state = this.#state
    state.electionElapsed++
    if (state.role === 'leader') this.#tickLeader()
    else if (state.isPromotable && state.electionElapsed >= state.electionTimeout) {
      state.electionElapsed = 0
      standForElection(state, state.rules.preVote ? 'preVote' : 'vote')
    }
    this.#check()
  }

  #tickLeader(): void {
    const state = this.#state
    state.heartbeatElapsed++
    if (state.electionElapsed >= state.limits.electionTicks) {
      state.electionElapsed = 0
      if (state.rules.checkQuorum) this.#checkLeadership()
      // A leadership transfer is abandoned after an election timeout.
      if (state.role === 'leader') state.transferee = 0
    }
    // Needed here too: a transfer may have been under way when the entry was applied.
    maybeLeaveJoint(state)
    retire(state)
    if (state.role !== 'leader' || state.heartbeatElapsed < state.limits.heartbeatTicks) return
    state.heartbeatElapsed = 0
    broadcastHeartbeat(state)
  }

  #checkLeadership(): void {
    const state = this.#state
    if (!state.quorumActive()) state.becomeFollower(state.term, 0)
    for (const [id, progress] of state.tracked.progress) if (id !== state.id) progress.recentlyActive = false
  }

  /** Stands for election now. */
  campaign(): void {
    standForElection(this.#state, this.#state.rules.preVote ? 'preVote' : 'vote')
    this.#check()
  }

  /** Sends heartbeats now. */
  beat(): void {
    if (this.#state.role === 'leader') broadcastHeartbeat(this.#state)
    this.#check()
  }

  /** Handles a message of another member. One that no correct member sends is ignored, and what is wrong with it is returned. */
  step(message: Message): string | undefined {
    const problem = messageProblem(message, this.#state.id)
    if (problem !== undefined) return problem
    dispatch(this.#state, message)
    this.#check()
    return undefined
  }

  /**
   * Proposes entries. Returns the index of the first one. Returns undefined if this member is not the leader (a follower
   * forwards them and does not learn the index), leadership is being transferred, or too much is uncommitted.
   */
  propose(data: readonly Uint8Array[]): Index | undefined {
    const first = this.#state.log.lastIndex + 1
    const accepted = propose(
      this.#state,
      data.map((one): Proposal => ({ kind: 'normal', data: one })),
    )
    this.#check()
    return accepted && this.#state.role === 'leader' ? first : undefined
  }

  /**
   * Proposes a configuration change, or returns why it is refused. A leader then appends an empty entry in its place, so
   * that a follower that forwarded it sees progress.
   */
  proposeConfiguration(change: ConfigurationChange): { readonly index: Index } | { readonly refused: string } {
    const state = this.#state
    const problem = state.role === 'leader' ? changeProblem(state, change) : undefined
    const index = state.log.lastIndex + 1
    const accepted = propose(this.#state, [{ kind: 'configuration', change }])
    this.#check()
    if (!accepted)
      return { refused: state.role === 'leader' ? 'the leader takes no proposals now' : 'there is no leader' }
    return problem === undefined ? { index } : { refused: problem }
  }

  /** Starts a linearizable read. It ends in a `reads` or `readsLost` effect with this context. Returns false without a leader. */
  read(context: number): boolean {
    const state = this.#state
    if (state.role === 'leader') return readAsLeader(state, state.id, context)
    if (state.role !== 'follower' || state.leader === 0 || state.forwardedReads.full) return false
    state.send({ kind: 'readIndex', to: state.leader, context: state.forwardedReads.ask(context) })
    return true
  }

  /** Abandons the reads that were forwarded to the leader, so that lost ones do not accumulate. */
  abandonReads(): void {
    this.#state.forwardedReads.dropAll()
  }

  /** Transfers leadership to a voter, or abandons that after an election timeout. A follower asks its leader to do so. */
  transferLeadership(to: NodeId): void {
    const state = this.#state
    if (state.role === 'leader') transferTo(state, to)
    else if (state.leader !== 0) state.send({ kind: 'transferLeader', to: state.leader, from: to })
    this.#check()
  }

  /** Makes a follower forget its leader, so that it may vote for another member at once. */
  forgetLeader(): void {
    if (this.#state.role === 'follower' && this.#state.rules.forgetLeader) this.#state.leader = 0
    this.#check()
  }

  /**
   * Reports that the process of `node` has ended, as a refused connection shows. If it is the leader, this member shortens
   * its election timeout. A wrong report does no harm: timeouts do not affect safety, and members that hear from a live
   * leader do not vote. The rest of the timeout stays random, so that candidates rarely collide.
   */
  processEnded(node: NodeId): void {
    const state = this.#state
    if (state.role !== 'follower' || state.leader !== node) return
    const drawn = state.electionTimeout - state.limits.electionTicks
    state.becomeFollower(state.term, 0)
    state.electionElapsed = Math.max(0, state.electionTimeout - 1 - (drawn >> 1))
    this.#check()
  }

  /** Reports that write `sequence` is durable: its entries count, and so do this member's vote and acknowledgement in it. */
  persisted(sequence: number): void {
    assert(sequence <= this.#sequence, () => `write ${sequence} was never handed out, the last is ${this.#sequence}`)
    this.#state.log.written(sequence)
    while (this.#pending.length > 0 && (this.#pending[0] as Pending).sequence <= sequence) {
      for (const message of (this.#pending.shift() as Pending).own) dispatch(this.#state, message)
    }
    this.#check()
  }

  /** Reports that everything up to `index` is applied. */
  applied(index: Index): void {
    const state = this.#state
    let bytes = 0
    for (let at = state.log.applied + 1; at <= index; at++) {
      const entry = state.log.entry(at)
      if (entry !== undefined) bytes += entryBytes(entry)
    }
    state.log.applyTo(index)
    state.uncommittedBytes = Math.max(0, state.uncommittedBytes - bytes)
    maybeLeaveJoint(state)
    this.#check()
  }

  /** Applies a configuration entry, before `applied`. Returns the configuration that is in force from now on. */
  applyConfiguration(change: ConfigurationChange): Configuration {
    const configuration = applyChange(this.#state, change)
    this.#check()
    return configuration
  }

  /** Reports a snapshot of the program: peers may be offered it, and `compact` may drop what it covers. */
  snapshotTaken(meta: SnapshotMeta): void {
    const { snapshot } = this.#state
    assert(
      meta.index > 0 && meta.index >= (snapshot?.index ?? 0),
      () => `a snapshot of ${meta.index} after one of ${snapshot?.index}`,
    )
    this.#state.snapshot = meta
  }

  /**
   * Reports that a leader's snapshot is durable here; the leader's term may have ended. The snapshot is committed in any
   * case, and replaces the log unless the log contains it. After a restart, the program would begin with it, too.
   */
  snapshotArrived(meta: SnapshotMeta): void {
    onArrivedSnapshot(this.#state, meta)
    this.#check()
  }

  compact(index: Index): void {
    this.#state.log.compact(index)
    this.#check()
  }

  reportUnreachable(id: NodeId): void {
    const progress = this.#state.role === 'leader' ? this.#state.progressOf(id) : undefined
    if (progress?.state === 'replicate') progress.becomeProbe()
    this.#check()
  }

  /** Reports whether the peer has received the snapshot of a `snapshot` message. */
  reportSnapshot(id: NodeId, delivered: boolean): void {
    const progress = this.#state.role === 'leader' ? this.#state.progressOf(id) : undefined
    if (progress?.state === 'snapshot') {
      if (!delivered) progress.pendingSnapshot = 0
      progress.becomeProbe()
      // Nothing more is sent before the acknowledgement or the answer to a heartbeat.
      progress.paused = true
    }
    this.#check()
  }

  // --- effects ---

  get hasEffects(): boolean {
    const state = this.#state
    return (
      state.messages.length > 0 ||
      state.gated.length > 0 ||
      state.readsReady.length > 0 ||
      state.readsLost.length > 0 ||
      state.snapshotWanted ||
      state.log.hasUnwritten ||
      this.#changedHardState() !== undefined ||
      state.log.hasNextCommitted(!state.rules.applyDurableOnly)
    )
  }

  /** The effects of most inputs: one object as long as role and leader stay the same. */
  #noEffects(): Effects {
    const { role, leader } = this.#state
    if (this.#noEffectsCache?.role !== role || this.#noEffectsCache.leader !== leader)
      this.#noEffectsCache = { ...NO_EFFECTS, role, leader }
    return this.#noEffectsCache
  }

  #noEffectsCache: Effects | undefined

  #changedHardState(): HardState | undefined {
    const state = this.#state
    const lastHard = this.#lastHard
    const { term, vote } = state
    const commit = state.log.committed
    if (term === lastHard.term && vote === lastHard.vote && commit === lastHard.commit) return undefined
    return { term, vote, commit }
  }

  takeEffects(): Effects {
    const state = this.#state
    if (!this.hasEffects) return this.#noEffects()
    const hardState = this.#changedHardState()
    const entries = state.log.unwritten()
    const snapshot = state.log.snapshotToWrite
    const waiting = state.gated.length === 0 ? NOTHING : state.gated
    const own = waiting === NOTHING ? NOTHING : waiting.filter((message) => message.to === state.id)
    const gated = own.length === 0 ? waiting : waiting.filter((message) => message.to !== state.id)
    const termOrVote =
      hardState !== undefined && (hardState.term !== this.#lastHard.term || hardState.vote !== this.#lastHard.vote)
    const mustSync = entries.length > 0 || termOrVote || snapshot !== undefined
    const persist = this.#beginWrite(
      mustSync || hardState !== undefined || state.gated.length > 0,
      mustSync,
      entries,
      snapshot,
      own,
    )
    const committed = state.log.nextCommitted(!state.rules.applyDurableOnly, state.limits.committedBytesMax)
    const last = committed[committed.length - 1]
    if (last !== undefined) state.log.applying = last.index
    const { snapshotWanted } = state
    state.snapshotWanted = false
    // Lists that are handed out are never changed again; empty ones are kept.
    const messages = state.messages.length === 0 ? NOTHING : state.messages
    const reads = state.readsReady.length === 0 ? NOTHING : state.readsReady
    const readsLost = state.readsLost.length === 0 ? NOTHING : state.readsLost
    if (messages !== NOTHING) state.messages = []
    if (waiting !== NOTHING) state.gated = []
    if (reads !== NOTHING) state.readsReady = []
    if (readsLost !== NOTHING) state.readsLost = []
    if (hardState !== undefined) this.#lastHard = hardState
    const { role, leader } = state
    return { role, leader, hardState, persist, messages, gated, waiting, committed, reads, readsLost, snapshotWanted }
  }

  #beginWrite(
    needed: boolean,
    mustSync: boolean,
    entries: readonly Entry[],
    snapshot: SnapshotMeta | undefined,
    own: readonly Message[],
  ): PersistEffect | undefined {
    if (!needed) return undefined
    const state = this.#state
    const sequence = ++this.#sequence
    state.log.beginWrite(sequence)
    this.#pending.push({ sequence, own })
    const hardState = { term: state.term, vote: state.vote, commit: state.log.committed }
    // Gated messages without anything to write wait for the writes under way.
    return { sequence, hardState, entries, snapshot, mustSync }
  }

  #check(): void {
    this.#before = checkInvariants(this.#state, this.#before)
  }
}
