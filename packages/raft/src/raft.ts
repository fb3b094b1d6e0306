import { assert } from './assert.js'
import { RaftState, type ReadReady, type Role, type Trace } from './raft-state.js'
import { dispatch, readAsLeader } from './dispatch.js'
import { standForElection } from './election.js'
import { checkInvariants, type Watermarks, watermarksOf } from './invariants.js'
import { entryBytes, type Message, messageProblem } from './messages.js'
import type { RaftOptions } from './options.js'
import type { Progress } from './progress.js'
import { propose } from './proposals.js'
import {
  applyChange,
  changeProblem,
  maybeLeaveJoint,
  retire,
  successorOf,
  transferTo,
} from './configuration-entries.js'
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

/** What must be durable before `persisted(sequence)` may be called. Writes complete in the order of their sequence. */
export interface PersistEffect {
  readonly sequence: number
  readonly hardState: HardState
  /** They replace the log from `entries[0].index` on. */
  readonly entries: readonly Entry[]
  /** Replaces log and state; the program has (or gets) the state that goes with it. */
  readonly snapshot: SnapshotMeta | undefined
  /** False when only the commit index moved: losing that is harmless, so it need not be synced. */
  readonly mustSync: boolean
}

/** Everything that has come about since the last call. */
export interface Effects {
  readonly role: Role
  readonly leader: NodeId
  /** The hard state, if it differs from the last one given out. */
  readonly hardState: HardState | undefined
  readonly persist: PersistEffect | undefined
  /** May leave at once. */
  readonly messages: readonly Message[]
  /** May leave only when `persist` is durable (or now, if there is none). Those to this member itself are not here. */
  readonly gated: readonly Message[]
  /** All that waits for the write, in order: `gated`, and the own vote and acknowledgements, which `persisted` counts. */
  readonly waiting: readonly Message[]
  /** To be applied, in order; then `applied(index)`. */
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadReady[]
  /** Contexts of reads that will not be answered: ask again. */
  readonly readsLost: readonly number[]
  /** A peer needs a snapshot and there is none: the program should take one now. */
  readonly snapshotWanted: boolean
}

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

const NOTHING: readonly never[] = []

const QUIET: Omit<Effects, 'role' | 'leader'> = {
  hardState: undefined,
  persist: undefined,
  messages: NOTHING,
  gated: NOTHING,
  waiting: NOTHING,
  committed: NOTHING,
  reads: NOTHING,
  readsLost: NOTHING,
  snapshotWanted: false,
}

interface Pending {
  readonly sequence: number
  readonly own: readonly Message[]
}

/**
 * The consensus core of one member: inputs in, effects out. Pure: no clock, no random of its own, no I/O. The program
 * calls an input, then `takeEffects`, writes, sends and applies what it says, and reports `persisted` and `applied`.
 * Local invariants are checked after each input; a broken one throws, and the member must stop.
 *
 * Source: Ongaro, *Consensus: Bridging Theory and Practice* (the thesis); departures are in docs/divergence.md.
 */
export class Raft {
  readonly #state: RaftState
  #lastHard: HardState
  #sequence = 0
  #pending: Pending[] = []
  #before: Watermarks

  constructor(options: RaftOptions) {
    this.#state = new RaftState(options)
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
  /** Whether an entry of this term is committed: only then does a leader know the commit index. */
  get hasCommittedInTerm(): boolean {
    return this.#state.hasCommittedInTerm
  }
  /** Whom leadership is being handed to; 0: nobody. */
  get transferee(): NodeId {
    return this.#state.transferee
  }
  /** The best voter to hand leadership to, as the leader knows it; undefined when there is none. */
  get successor(): NodeId | undefined {
    return successorOf(this.#state)
  }
  get electionTimeoutTicks(): number {
    return this.#state.electionTimeout
  }
  set electionTimeoutTicks(ticks: number) {
    this.#state.electionTimeout = ticks
  }
  set trace(trace: Trace | undefined) {
    this.#state.trace = trace
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

  /** One tick of the program's clock. */
  tick(): void {
    const state = this.#state
    state.electionElapsed++
    if (state.role === 'leader') this.#tickLeader()
    else if (state.isPromotable && state.electionElapsed >= state.electionTimeout) {
      state.electionElapsed = 0
      standForElection(state, state.preVote ? 'preVote' : 'vote')
    }
    this.#check()
  }

  #tickLeader(): void {
    const state = this.#state
    state.heartbeatElapsed++
    if (state.electionElapsed >= state.limits.electionTicks) {
      state.electionElapsed = 0
      if (state.checkQuorum) this.#checkLeadership()
      // A transfer that has not come about within an election timeout is given up.
      if (state.role === 'leader') state.transferee = 0
    }
    // Also when the entry that would have led to it was applied during a transfer.
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
    standForElection(this.#state, this.#state.preVote ? 'preVote' : 'vote')
    this.#check()
  }

  /** Sends heartbeats now. */
  beat(): void {
    if (this.#state.role === 'leader') broadcastHeartbeat(this.#state)
    this.#check()
  }

  /** A message of another member. One that no correct member sends is left alone; the answer then says what is wrong. */
  step(message: Message): string | undefined {
    const problem = messageProblem(message, this.#state.id)
    if (problem !== undefined) return problem
    dispatch(this.#state, message)
    this.#check()
    return undefined
  }

  /**
   * Proposes entries. The index of the first one, or undefined: not leader (a follower hands them on and does not know),
   * leadership is being handed over, or too much is uncommitted.
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
   * Proposes a configuration change. `refused` says why not; a leader then appends an empty entry in its place, so that
   * whoever handed it on sees the log move.
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

  /** Asks for a linearizable read; the answer is a `reads` or `readsLost` effect with this context. False: no leader. */
  read(context: number): boolean {
    const state = this.#state
    if (state.role === 'leader') return readAsLeader(state, state.id, context)
    if (state.role !== 'follower' || state.leader === 0 || state.handedReads.full) return false
    state.send({ kind: 'readIndex', to: state.leader, context: state.handedReads.ask(context) })
    return true
  }

  /** The program waits for none of its reads any more: questions that were lost on the way must not add up. */
  abandonReads(): void {
    this.#state.handedReads.dropAll()
  }

  /** Hands leadership to a voter; given up after an election timeout. A follower asks its leader to. */
  transferLeadership(to: NodeId): void {
    const state = this.#state
    if (state.role === 'leader') transferTo(state, to)
    else if (state.leader !== 0) state.send({ kind: 'transferLeader', to: state.leader, from: to })
    this.#check()
  }

  /** A follower that does not trust its leader any more votes for others at once. */
  forgetLeader(): void {
    if (this.#state.role === 'follower' && !this.#state.options.leaseReads) this.#state.leader = 0
    this.#check()
  }

  /**
   * The program knows that the process of `node` has ended, such as from a refused connection. If that is the leader, this
   * member does not wait for the whole election timeout. It is no more than a hint: timeouts never decide about safety,
   * and whoever hears from a living leader does not vote. How long it waits is still drawn, so that candidates rarely meet.
   */
  processEnded(node: NodeId): void {
    const state = this.#state
    if (state.role !== 'follower' || state.leader !== node) return
    const drawn = state.electionTimeout - state.limits.electionTicks
    state.becomeFollower(state.term, 0)
    state.electionElapsed = Math.max(0, state.electionTimeout - 1 - (drawn >> 1))
    this.#check()
  }

  /** Write `sequence` is durable: its entries count, and so do the own vote and acknowledgement that waited for it. */
  persisted(sequence: number): void {
    this.stored(sequence)
    while (this.#pending.length > 0 && (this.#pending[0] as Pending).sequence <= sequence) {
      for (const message of (this.#pending.shift() as Pending).own) dispatch(this.#state, message)
    }
    this.#check()
  }

  /** The log's part of {@link Raft.persisted} alone: for script tests that deliver the own messages by hand. */
  stored(sequence: number): void {
    assert(sequence <= this.#sequence, () => `write ${sequence} was never given out, the last is ${this.#sequence}`)
    this.#state.log.written(sequence)
  }

  /** Everything up to `index` is applied. */
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

  /** To be called while applying a configuration entry, before `applied`; returns what is in force from now on. */
  applyConfiguration(change: ConfigurationChange): Configuration {
    const configuration = applyChange(this.#state, change)
    this.#check()
    return configuration
  }

  /** The program has a snapshot: what a peer may be given, and, with `compact`, what the log may forget. */
  snapshotTaken(meta: SnapshotMeta): void {
    const { snapshot } = this.#state
    assert(
      meta.index > 0 && meta.index >= (snapshot?.index ?? 0),
      () => `a snapshot of ${meta.index} after one of ${snapshot?.index}`,
    )
    this.#state.snapshot = meta
  }

  /**
   * The program has made a leader's snapshot durable, after that leader's term ended perhaps. It is committed, whoever leads
   * now, and takes the place of the log unless the log has it: the program would begin with it after a restart, too.
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

  /** The peer has (`delivered`) or has not got the snapshot that a `snapshot` message asked for. */
  reportSnapshot(id: NodeId, delivered: boolean): void {
    const progress = this.#state.role === 'leader' ? this.#state.progressOf(id) : undefined
    if (progress?.state === 'snapshot') {
      if (!delivered) progress.pendingSnapshot = 0
      progress.becomeProbe()
      // Wait for the acknowledgement, or for a heartbeat's answer, before sending more.
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
      state.log.hasNextCommitted(state.options.applyUnwritten ?? false)
    )
  }

  /** Asked for after every input, and most inputs bring nothing about: the same object, as long as the roles stay. */
  #noEffects(): Effects {
    const { role, leader } = this.#state
    if (this.#quiet?.role !== role || this.#quiet.leader !== leader) this.#quiet = { ...QUIET, role, leader }
    return this.#quiet
  }

  #quiet: Effects | undefined

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
    const persist = this.#handOut(
      mustSync || hardState !== undefined || state.gated.length > 0,
      mustSync,
      entries,
      snapshot,
      own,
    )
    const committed = state.log.nextCommitted(state.options.applyUnwritten ?? false, state.limits.committedBytesMax)
    const last = committed[committed.length - 1]
    if (last !== undefined) state.log.applying = last.index
    const { snapshotWanted } = state
    state.snapshotWanted = false
    // What is given out is never written to again; most lists are empty most of the time, and stay where they are.
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

  #handOut(
    needed: boolean,
    mustSync: boolean,
    entries: readonly Entry[],
    snapshot: SnapshotMeta | undefined,
    own: readonly Message[],
  ): PersistEffect | undefined {
    if (!needed) return undefined
    const state = this.#state
    const sequence = ++this.#sequence
    state.log.hand(sequence)
    this.#pending.push({ sequence, own })
    const hardState = { term: state.term, vote: state.vote, commit: state.log.committed }
    // Gated messages without anything to write still wait for the writes that are under way.
    return { sequence, hardState, entries, snapshot, mustSync }
  }

  #check(): void {
    this.#before = checkInvariants(this.#state, this.#before)
  }
}
