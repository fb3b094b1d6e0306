import { assert } from './assert.js'
import { type EntryId, RaftLog } from './log.js'
import { configurationOf, type Members, restoreMembers, type Tracked } from './membership.js'
import { isGated, isHandedOn, type Message, type MessageFields, message } from './messages.js'
import { DEFAULT_RAFT_LIMITS, type RaftLimits, type RaftOptions } from './options.js'
import { Progress } from './progress.js'
import { jointCommitted, jointVote, type VoteResult } from './quorum.js'
import { HandedReads, ReadRounds } from './reads.js'
import type { Configuration, Index, NodeId, SnapshotMeta, Term } from './types.js'

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

export interface ReadReady {
  readonly context: number
  /** The read may run once this index is applied. */
  readonly index: Index
}

/** Something a log wants to say; for script tests and debugging. Arguments are not formatted unless somebody listens. */
export type Trace = (text: string) => void

/**
 * The state of one member and the elementary moves on it. The rules of elections, replication and membership are in the
 * files beside this one. Roles change only through the `become…` methods, which all go through `reset`, where the vote is
 * cleared only if the term changes.
 */
export class RaftState {
  readonly id: NodeId
  readonly limits: RaftLimits
  readonly log: RaftLog
  role: Role = 'follower'
  term: Term
  vote: NodeId
  /** 0: none known. Not the same as the vote. */
  leader: NodeId = 0
  tracked: Tracked
  votes = new Map<NodeId, boolean>()
  /** Whom leadership is being handed to; 0: nobody. */
  transferee: NodeId = 0
  /** Index of the applied change by which this member lost its vote; 0: none, or others are known to know of it. */
  retiringAt: Index = 0
  /** No configuration change is proposed before this index is applied. */
  pendingConfiguration: Index = 0
  uncommittedBytes = 0
  electionElapsed = 0
  heartbeatElapsed = 0
  electionTimeout = 0
  reads: ReadRounds
  readonly handedReads: HandedReads

  snapshot: SnapshotMeta | undefined
  /** A peer needs a snapshot, and there is none to give. */
  snapshotWanted = false
  /** Whoever was there at the founding; undefined when the log does not begin there. */
  readonly #founders: ReadonlySet<NodeId> | undefined

  messages: Message[] = []
  gated: Message[] = []
  readsReady: ReadReady[] = []
  readsLost: number[] = []
  trace: Trace | undefined

  constructor(readonly options: RaftOptions) {
    const { id, snapshot, hardState, entries } = options
    assert(Number.isSafeInteger(id) && id > 0, () => `a node id is a positive integer, not ${id}`)
    this.id = id
    this.snapshot = snapshot.index > 0 ? snapshot : undefined
    const { voters, learners } = snapshot.configuration
    this.#founders = snapshot.index === 0 ? new Set([...voters, ...learners]) : undefined
    this.limits = { ...DEFAULT_RAFT_LIMITS, ...options.limits }
    this.log = new RaftLog(snapshot, entries, Math.max(hardState.commit, snapshot.index))
    this.term = hardState.term
    this.vote = hardState.vote
    this.reads = new ReadRounds(this.limits.readsMax)
    this.handedReads = new HandedReads(this.limits.readsMax, options.random)
    this.tracked = restoreMembers(snapshot.configuration, (isLearner) => this.newProgress(isLearner))
    this.becomeFollower(this.term, 0)
  }

  get preVote(): boolean {
    return this.options.preVote ?? true
  }

  get checkQuorum(): boolean {
    return this.options.checkQuorum ?? true
  }

  get members(): Members {
    return this.tracked.members
  }

  get configuration(): Configuration {
    // Asked for at every step, and changed once in a while: members are replaced, never altered.
    if (this.#known?.of !== this.members) this.#known = { of: this.members, is: configurationOf(this.members) }
    return this.#known.is
  }

  #known: { readonly of: Members; readonly is: Configuration } | undefined

  get isLearner(): boolean {
    return this.tracked.progress.get(this.id)?.isLearner ?? false
  }

  get isSingleton(): boolean {
    const { voters, votersOutgoing } = this.members
    return voters.size === 1 && votersOutgoing.size === 0
  }

  newProgress(isLearner: boolean, next = Math.max(this.log.lastIndex, 1)): Progress {
    return new Progress(next, isLearner, this.limits.inflightsMax, this.limits.inflightBytesMax)
  }

  progressOf(id: NodeId): Progress | undefined {
    return this.tracked.progress.get(id)
  }

  /** Peers in the order of their ids, without this member. */
  peers(): readonly NodeId[] {
    // Asked for at every round, and changed once in a while: what is tracked is replaced, never altered.
    if (this.#others?.of !== this.tracked) {
      const is = [...this.tracked.progress.keys()].filter((id) => id !== this.id).sort((a, b) => a - b)
      this.#others = { of: this.tracked, is }
    }
    return this.#others.is
  }

  #others: { readonly of: Tracked; readonly is: readonly NodeId[] } | undefined

  /**
   * Whether a peer may take entries after `previous`. The first entry does not say what was founded: a peer that joined
   * later must begin with a snapshot, though nothing of the log is compacted.
   */
  canFollow(id: NodeId, previous: Index): boolean {
    return previous > 0 || this.#founders === undefined || this.#founders.has(id)
  }

  voterIds(): NodeId[] {
    const { voters, votersOutgoing } = this.members
    return [...new Set([...voters, ...votersOutgoing])].sort((a, b) => a - b)
  }

  isVoter(id: NodeId): boolean {
    return this.members.voters.has(id) || this.members.votersOutgoing.has(id)
  }

  /**
   * Whether this member may stand for election: a voter whose state is whole. Also one that has applied the end of its
   * own vote, until it hears that somebody else knows of it: the others may need the longer log of this one (thesis 4.2.2).
   */
  get isPromotable(): boolean {
    const own = this.tracked.progress.get(this.id)
    const voter = own !== undefined && !own.isLearner
    return (voter || this.retiringAt > 0) && this.log.pendingSnapshot === undefined
  }

  /** A leader that is no voter any more only hands over. */
  get isRetiring(): boolean {
    return this.role === 'leader' && this.retiringAt > 0
  }

  quorumCommitted(): Index {
    const { voters, votersOutgoing } = this.members
    return jointCommitted(voters, votersOutgoing, (id) => this.tracked.progress.get(id)?.match)
  }

  voteResult(): VoteResult {
    const { voters, votersOutgoing } = this.members
    return jointVote(voters, votersOutgoing, (id) => this.votes.get(id))
  }

  isQuorum(ids: ReadonlySet<NodeId>): boolean {
    const { voters, votersOutgoing } = this.members
    return jointVote(voters, votersOutgoing, (id) => (ids.has(id) ? true : undefined)) === 'won'
  }

  /** A leader that has not heard from a quorum since the last check may have been replaced. */
  quorumActive(): boolean {
    const { voters, votersOutgoing } = this.members
    const heard = (id: NodeId) => {
      const progress = this.tracked.progress.get(id)
      return progress === undefined || progress.isLearner ? undefined : id === this.id || progress.recentlyActive
    }
    return jointVote(voters, votersOutgoing, heard) === 'won'
  }

  /** Queues a message; replies that promise something durable wait for the next write. */
  send(fields: MessageFields): void {
    const { kind } = fields
    const isVote = kind === 'vote' || kind === 'voteReply' || kind === 'preVote' || kind === 'preVoteReply'
    const handedOn = isHandedOn(kind)
    const term = isVote ? fields.term : handedOn ? 0 : (fields.term ?? this.term)
    assert(term !== undefined && (handedOn || term >= 0), () => `${kind} of node ${this.id} has no term`)
    const out = message(fields, fields.from ?? this.id, term)
    if (isGated(kind)) this.gated.push(out)
    else {
      assert(out.to !== this.id, () => `node ${this.id} sends ${kind} to itself`)
      this.messages.push(out)
    }
  }

  reset(term: Term): void {
    if (this.term !== term) {
      assert(term > this.term, () => `the term of node ${this.id} would go back from ${this.term} to ${term}`)
      this.term = term
      this.vote = 0
    }
    this.leader = 0
    this.electionElapsed = 0
    this.heartbeatElapsed = 0
    this.electionTimeout = this.limits.electionTicks + this.options.random(this.limits.electionTicks)
    this.transferee = 0
    this.votes = new Map()
    const progress = new Map<NodeId, Progress>()
    for (const [id, old] of this.tracked.progress) {
      const fresh = this.newProgress(old.isLearner, this.log.lastIndex + 1)
      if (id === this.id) fresh.match = this.log.lastIndex
      progress.set(id, fresh)
    }
    this.tracked = { members: this.tracked.members, progress }
    this.pendingConfiguration = 0
    this.uncommittedBytes = 0
    for (const read of this.reads.dropAll()) if (read.from === this.id) this.readsLost.push(read.context)
    this.readsLost.push(...this.handedReads.dropAll())
  }

  becomeFollower(term: Term, leader: NodeId): void {
    this.reset(term)
    this.leader = leader
    this.role = 'follower'
    this.trace?.(`${this.id} became follower at term ${this.term}`)
  }

  /** Asks whether an election could be won, without touching term or vote (thesis 9.6). */
  becomePreCandidate(): void {
    assert(this.role !== 'leader', () => `leader ${this.id} becomes a candidate`)
    this.votes = new Map()
    this.leader = 0
    this.role = 'preCandidate'
    this.trace?.(`${this.id} became pre-candidate at term ${this.term}`)
  }

  becomeCandidate(): void {
    assert(this.role !== 'leader', () => `leader ${this.id} becomes a candidate`)
    this.reset(this.term + 1)
    this.vote = this.id
    this.role = 'candidate'
    this.trace?.(`${this.id} became candidate at term ${this.term}`)
  }

  becomeLeader(): void {
    assert(this.role !== 'follower', () => `follower ${this.id} becomes leader`)
    this.reset(this.term)
    this.leader = this.id
    this.role = 'leader'
    const own = this.tracked.progress.get(this.id)
    assert(own !== undefined || this.retiringAt > 0, () => `leader ${this.id} is not a member`)
    if (own !== undefined) {
      own.becomeReplicate()
      own.recentlyActive = true
    }
    // There may be a change in the log that is not committed: none may be proposed before everything here is applied.
    this.pendingConfiguration = this.log.lastIndex
    this.trace?.(`${this.id} became leader at term ${this.term}`)
  }

  /** Commit index from the acknowledgements, only for entries of the own term (thesis 3.6.2). True if it moved. */
  maybeCommit(): boolean {
    const index = this.quorumCommitted()
    const id: EntryId = { term: this.term, index }
    if (index <= this.log.committed || !this.log.matches(id)) return false
    this.log.commitTo(index)
    return true
  }

  get hasCommittedInTerm(): boolean {
    return this.log.termAt(this.log.committed) === this.term
  }

  /** What stands for the compacted part of the log, as the program last said; undefined: it has none to give now. */
  snapshotMeta(): SnapshotMeta | undefined {
    return this.snapshot
  }

  /**
   * Takes a snapshot of the leader in place of the own log; false if it has nothing new. The configuration in it may be
   * older than this member's joining: then it is a follower that may not stand for election until the entry that adds it.
   */
  restore(meta: SnapshotMeta | undefined): boolean {
    assert(meta !== undefined, () => `a snapshot message without a snapshot at node ${this.id}`)
    if (meta.index <= this.log.committed) return false
    if (this.log.matches(meta)) {
      this.log.commitTo(meta.index)
      this.snapshot = meta
      return false
    }
    // A leader has everything that was committed before its term.
    assert(this.role === 'follower', () => `node ${this.id} takes a snapshot as ${this.role}`)
    this.log.restore(meta)
    this.snapshot = meta
    // The member that made the snapshot knows of the end of this member's vote.
    this.retiringAt = 0
    this.tracked = restoreMembers(meta.configuration, (isLearner) => this.newProgress(isLearner))
    return true
  }
}
