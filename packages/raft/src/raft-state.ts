import { assert } from './assert.js'
import { type EntryId, RaftLog } from './log.js'
import { configurationOf, type Members, restoreMembers, type Tracked } from './membership.js'
import { isGated, isForwarded, type Message, type MessageFields, message } from './messages.js'
import { DEFAULT_RAFT_LIMITS, type RaftLimits, type RaftOptions } from './options.js'
import type { RaftRules } from './rules.js'
import { Progress } from './progress.js'
import { jointCommitted, jointVote, type VoteResult } from './quorum.js'
import { ForwardedReads, ReadRounds } from './reads.js'
import type { Configuration, Index, NodeId, SnapshotMeta, Term } from './types.js'

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

export interface ReadReady {
  readonly context: number
  /** The read may run once this index is applied. */
  readonly index: Index
}

/** Receives one line per state transition; for script tests. Lines are not formatted without a receiver. */
export type Trace = (text: string) => void

/**
 * The state of one member and the elementary transitions on it. The rules of elections, replication and membership are in
 * the files beside this one. Roles change only through the `become…` methods; all except `becomePreCandidate` go through
 * `reset`, which clears the vote only if the term changes.
 */
export class RaftState {
  readonly id: NodeId
  readonly options: RaftOptions
  readonly rules: RaftRules
  readonly limits: RaftLimits
  /** The log. Whatever is committed in it is never replaced. */
  readonly log: RaftLog
  /** At most one member is `leader` per term: the one with the votes of a quorum. */
  role: Role = 'follower'
  /** The latest term that this member has seen. Never decreases, and is durable before any message of it promises something. */
  term: Term
  /** The member that got this one's vote in `term`; 0: none. Changes at most once per term, from 0. */
  vote: NodeId
  /** The known leader of `term`; 0: unknown. Equal to `id` exactly if the role is `leader`; independent of `vote`. */
  leader: NodeId = 0
  /** The applied configuration with one progress per member. Replaced as a whole, never altered. */
  tracked: Tracked
  /** Answers to this member's (pre-)candidacy, the first one of each voter. Empty in other roles. */
  votes = new Map<NodeId, boolean>()
  /** The voter that leadership is being transferred to; 0: none. Not 0 only at a leader, which rejects proposals meanwhile. */
  transferee: NodeId = 0
  /** Index of the applied change that took this member's vote; 0: it has a vote, or another member knows of the change. */
  retiringAt: Index = 0
  /** At a leader, no configuration change in the log is above this index: none is proposed before it is applied. */
  pendingConfiguration: Index = 0
  /** Bytes of proposals in this leader's term that are not applied yet: at most `uncommittedBytesMax`, or one larger batch. */
  uncommittedBytes = 0
  /** Ticks since a leader was heard from or a vote was given; at a leader, since the last quorum check. */
  electionElapsed = 0
  /** Ticks since the last round of heartbeats. */
  heartbeatElapsed = 0
  /** Drawn from [n, 2n) at each reset, where n is `electionTicks`. */
  electionTimeout = 0
  /** Reads that wait for a quorum. Empty except at a leader. */
  readonly reads: ReadRounds
  /** Reads that the leader was asked to confirm. Empty at a leader. */
  readonly forwardedReads: ForwardedReads
  /** The program's newest snapshot, which peers are offered; undefined: it has none. Its index never decreases. */
  snapshot: SnapshotMeta | undefined
  /** Whether a peer needs a snapshot and there is none. */
  snapshotWanted = false
  /** Members of the first configuration; undefined if the log does not begin with it. */
  readonly #founders: ReadonlySet<NodeId> | undefined

  /** Messages that may leave at once. */
  messages: Message[] = []
  /** Messages that leave once everything before them is durable, those to this member itself included. */
  gated: Message[] = []
  readsReady: ReadReady[] = []
  readsLost: number[] = []
  trace: Trace | undefined
  #configuration: { readonly of: Members; readonly value: Configuration } | undefined
  #peers: { readonly of: Tracked; readonly value: readonly NodeId[] } | undefined

  constructor(options: RaftOptions, rules: RaftRules) {
    this.options = options
    this.rules = rules
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
    this.forwardedReads = new ForwardedReads(this.limits.readsMax, options.random)
    this.tracked = restoreMembers(snapshot.configuration, (isLearner) => this.newProgress(isLearner))
    this.becomeFollower(this.term, 0)
  }

  get members(): Members {
    return this.tracked.members
  }

  get configuration(): Configuration {
    // Read at every step and rarely changed; members are replaced, never altered.
    if (this.#configuration?.of !== this.members)
      this.#configuration = { of: this.members, value: configurationOf(this.members) }
    return this.#configuration.value
  }

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
    // Read in every round and rarely changed; what is tracked is replaced, never altered.
    if (this.#peers?.of !== this.tracked) {
      const value = [...this.tracked.progress.keys()].filter((id) => id !== this.id).sort((a, b) => a - b)
      this.#peers = { of: this.tracked, value }
    }
    return this.#peers.value
  }

  /**
   * Whether a peer may receive entries after `previous`. No entry contains the first configuration, so a peer that joined
   * later must begin with a snapshot even if nothing of the log is compacted.
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
   * Whether this member may stand for election: it is a voter and no snapshot is being installed. So may one that has
   * applied the end of its own vote until another member is known to have it committed: the others may need this one's
   * longer log (thesis 4.2.2).
   */
  get isPromotable(): boolean {
    const own = this.tracked.progress.get(this.id)
    const voter = own !== undefined && !own.isLearner
    return (voter || this.retiringAt > 0) && this.log.pendingSnapshot === undefined
  }

  /** Whether this leader has lost its vote, and only transfers leadership. */
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

  /** Whether a quorum was heard from since the last check. If not, another leader may have been elected. */
  quorumActive(): boolean {
    const { voters, votersOutgoing } = this.members
    const heard = (id: NodeId) => {
      const progress = this.tracked.progress.get(id)
      return progress === undefined || progress.isLearner ? undefined : id === this.id || progress.recentlyActive
    }
    return jointVote(voters, votersOutgoing, heard) === 'won'
  }

  /** Queues a message. Those that promise something durable wait for the next write. */
  send(fields: MessageFields): void {
    const { kind } = fields
    const isVote = kind === 'vote' || kind === 'voteReply' || kind === 'preVote' || kind === 'preVoteReply'
    const forwarded = isForwarded(kind)
    const term = isVote ? fields.term : forwarded ? 0 : (fields.term ?? this.term)
    assert(term !== undefined && (forwarded || term >= 0), () => `${kind} of node ${this.id} has no term`)
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
    this.readsLost.push(...this.forwardedReads.dropAll())
  }

  becomeFollower(term: Term, leader: NodeId): void {
    this.reset(term)
    this.leader = leader
    this.role = 'follower'
    this.trace?.(`${this.id} became follower at term ${this.term}`)
  }

  /** Becomes a pre-candidate, which keeps its term and vote until it knows that it could win (thesis 9.6). */
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
    // Guard 2 of apply-time configuration (see configuration-entries.ts): the log may contain an uncommitted change of an
    // earlier leader, so no change is proposed before the whole log is applied.
    this.pendingConfiguration = this.log.lastIndex
    this.trace?.(`${this.id} became leader at term ${this.term}`)
  }

  /** Commits what a quorum has, only by entries of the current term (thesis 3.6.2). Returns whether the commit index moved. */
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

  /**
   * Replaces the log by the leader's snapshot. Returns false if the log has all of it. The configuration in the snapshot may
   * be older than this member's addition; the member then follows and cannot stand for election until that entry arrives.
   */
  restore(meta: SnapshotMeta): boolean {
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
    // The member that made the snapshot has applied the change that took this member's vote.
    this.retiringAt = 0
    this.tracked = restoreMembers(meta.configuration, (isLearner) => this.newProgress(isLearner))
    return true
  }
}
