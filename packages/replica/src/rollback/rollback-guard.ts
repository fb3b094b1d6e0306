import { crc32, Writer } from '@leasehold/core'
import type { Index, Message, NodeId, Raft } from '@leasehold/raft'
import type { Identity } from '../storage/identity.js'
import { writeContent } from '../log/entry-codec.js'
import type { MemberInfo } from '../cluster-meta.js'
import type { Logger, Random } from '../platform.js'
import { ContradictionError } from '../storage/storage-errors.js'
import type { Statement, StatementToWrite } from '../wire/statements.js'
import { type AcknowledgedMemory, type CheckedEntry, type EntryId, isLater, NO_ENTRY } from './acknowledged-memory.js'

/** A peer that takes part in consensus for this many election timeouts without a statement is of an older version. */
const OLDER_AFTER_ELECTIONS = 2

export interface RollbackGuardOptions {
  readonly raft: Raft
  readonly identity: Identity
  readonly random: Random
  readonly log: Logger
  readonly electionTicks: number
  readonly memory: AcknowledgedMemory
  readonly send: (to: NodeId, statement: StatementToWrite) => void
}

interface PeerState {
  /** This start has heard what the peer remembers: messages of consensus from it count. */
  cleared: boolean
  /** It has made a statement: it is of a version that does. */
  makesStatements: boolean
  /** Its committed history is another one than this member's, and not known to be the later one. */
  contradicts: boolean
  /** The start in which it last asked. */
  start: number
  /** When a message of consensus from it was first turned away, in ticks. */
  deferredAt: number | undefined
  askedAt: number
}

/**
 * Finds out that a member's disk was set back: a restored snapshot of its virtual machine, or an old copy of its data folder.
 * Such a member has forgotten votes and acknowledgements, and a majority that counts it may lack committed entries.
 *
 * A disk can go back only while the member is down, and what it has forgotten the others may know. So after each start a
 * member takes nothing in from a peer before that peer has answered a question with what it remembers: the highest entry
 * that this member acknowledged and that is committed. The member itself compares that with its log, and stops when it has
 * less. It gives no vote and acknowledges nothing before, since both only answer messages that it takes in.
 *
 * The comparison never fails a healthy member, however late, often or disordered frames arrive: an entry that a member has
 * acknowledged and that is committed is never truncated, so "you have entry 120 of term 3" stays true once it is true,
 * and the log is looked at when the statement arrives, which is after the acknowledgement. Only what clears a peer has to
 * be of this start: an answer names the number that the start has drawn. Uncommitted acknowledgements are not remembered;
 * they may be truncated.
 *
 * Where those who remember were all down, a majority has gone on without entries that were committed. When one of them
 * returns, two histories stand against each other. Both were agreed on by a majority in their time; the one with the later
 * term at the place where they differ is that of the majority now. So every statement says what is committed at its sender,
 * and the member with the earlier term there stops; the one with the later term continues and counts nothing from the other. The term
 * that a disk has forgotten may have been given to another leader, so that the terms are the same and only the entries
 * differ: then the member that differs from a majority of the voters stops.
 *
 * It is best effort: a contradiction in the compacted part of a log shows only in the terms, one that lies before what was
 * compared only in the hashes of the states, and members of an older version make no statements; they are cleared after a while.
 */
export class RollbackGuard {
  readonly #options: RollbackGuardOptions
  /** A number for this start, so that answers to an earlier one are not taken for answers to this one. */
  readonly #start: number
  readonly #peers = new Map<NodeId, PeerState>()
  #members: readonly MemberInfo[] = []
  /** Members with other entries of the same terms. */
  readonly #differing = new Set<NodeId>()
  readonly #writer = new Writer()
  #ticks = 0
  #sentAt = 0
  #sentVersion = 0

  constructor(options: RollbackGuardOptions) {
    this.#options = options
    this.#start = 1 + options.random.below(2 ** 32 - 1)
  }

  setMembers(members: readonly MemberInfo[]): void {
    const nodes = new Set(members.map(({ node }) => node))
    this.#members = members
    this.#options.memory.retain(nodes)
    for (const node of this.#peers.keys()) if (!nodes.has(node)) this.#peers.delete(node)
  }

  /** Whether a message of consensus may be taken in. If not, the sender is asked for what it remembers. */
  admits(message: Message): boolean {
    const { from } = message
    const peer = this.#peer(from)
    if (!peer.cleared || peer.contradicts) {
      peer.deferredAt ??= this.#ticks
      if (peer.askedAt !== this.#ticks) this.#requestStatement(from, peer)
      return false
    }
    if (message.kind !== 'vote' && message.kind !== 'preVote') return true
    // Sent by a start that has not compared, or long ago: either way it is not granted.
    const known = this.#options.memory.get(from)
    return known === undefined || !isLater(known, { index: message.index, term: message.logTerm })
  }

  /** @throws ContradictionError when this member must stop */
  receive(from: NodeId, statement: Statement): void {
    const { memory, identity } = this.#options
    const { requestStart, answeredStart, committed, acknowledged } = statement
    const peer = this.#peer(from)
    peer.makesStatements = true
    // It was started again since, perhaps on another disk: compare once more.
    if (requestStart !== 0 && requestStart !== peer.start && peer.start !== 0) peer.cleared = false
    if (requestStart !== 0) peer.start = requestStart
    for (const [node, entry] of acknowledged) {
      if (node === identity.node) this.#checkOwn(from, entry)
      else if (this.#members.some((member) => member.node === node)) memory.note(node, entry)
    }
    const contradicts = this.#compare(from, statement)
    // Answered unasked only once: two that contradict each other would answer for ever.
    const isNews = contradicts && !peer.contradicts
    if (isNews) this.#logContradiction(from, committed)
    peer.contradicts ||= contradicts
    if (answeredStart === this.#start) peer.cleared = true
    if (requestStart !== 0 || isNews) this.#answer(from, peer, statement)
  }

  /** Called once per tick of consensus. */
  tick(): void {
    this.#ticks++
    const { raft, memory, electionTicks, log } = this.#options
    for (const { node } of this.#others()) this.#peer(node)
    for (const [node, peer] of this.#peers) {
      if (peer.cleared) continue
      if (this.#ticks - peer.askedAt >= (peer.deferredAt === undefined ? electionTicks : 1))
        this.#requestStatement(node, peer)
      if (peer.makesStatements || peer.deferredAt === undefined) continue
      if (this.#ticks - peer.deferredAt < OLDER_AFTER_ELECTIONS * electionTicks) continue
      peer.cleared = true
      log.info('a member of an older version does not say what it remembers', { member: this.#nameOf(node) })
    }
    if (raft.role !== 'leader' || this.#others().length === 0) return
    this.#noteAcknowledged()
    if (memory.version === this.#sentVersion && this.#ticks - this.#sentAt < electionTicks) return
    this.#sentVersion = memory.version
    this.#sentAt = this.#ticks
    for (const { node } of this.#others()) if (this.#peer(node).makesStatements) this.#sendStatement(node, {})
  }

  #others(): readonly MemberInfo[] {
    const { node: self } = this.#options.identity
    return this.#members.filter(({ node, peer }) => node !== self && peer !== '')
  }

  #peer(node: NodeId): PeerState {
    let peer = this.#peers.get(node)
    if (!peer) {
      // Asked at the next tick.
      const askedAt = Number.NEGATIVE_INFINITY
      peer = { cleared: false, makesStatements: false, contradicts: false, start: 0, deferredAt: undefined, askedAt }
      this.#peers.set(node, peer)
    }
    return peer
  }

  /** What voters have acknowledged of what is committed, as the leader counts it. */
  #noteAcknowledged(): void {
    const { raft, memory } = this.#options
    const { progress, configuration, commit } = raft.status
    for (const node of new Set([...configuration.voters, ...configuration.votersOutgoing])) {
      const index = Math.min(progress.get(node)?.match ?? 0, commit)
      const term = raft.termAt(index)
      if (term !== undefined) memory.note(node, { index, term })
    }
  }

  // --- statements ---

  get #committed(): EntryId {
    const { raft } = this.#options
    return { index: raft.commit, term: raft.termAt(raft.commit) ?? 0 }
  }

  #entryAt(index: Index): CheckedEntry {
    const { raft } = this.#options
    const term = raft.termAt(index)
    if (index === 0 || term === undefined) return NO_ENTRY
    return { index, term, checksum: this.#checksumAt(index) }
  }

  #checksumAt(index: Index): number {
    const entry = this.#options.raft.entry(index)
    if (entry === undefined) return 0
    this.#writer.reset()
    writeContent(this.#writer, entry)
    return crc32(this.#writer.peek())
  }

  #requestStatement(to: NodeId, peer: PeerState): void {
    peer.askedAt = this.#ticks
    this.#sendStatement(to, { requestStart: this.#start })
  }

  #answer(to: NodeId, peer: PeerState, { requestStart, committed }: Statement): void {
    const evidence = this.#entryAt(committed.index)
    if (!peer.cleared) peer.askedAt = this.#ticks
    this.#sendStatement(to, { requestStart: peer.cleared ? 0 : this.#start, answeredStart: requestStart, evidence })
  }

  /** The checksum costs as much as the entry is long: what goes with every heartbeat is without. */
  #sendStatement(to: NodeId, what: Partial<Pick<Statement, 'requestStart' | 'answeredStart' | 'evidence'>>): void {
    const { memory, send, raft } = this.#options
    const isCompared = what.requestStart !== undefined
    const committed = isCompared ? this.#entryAt(raft.commit) : { ...this.#committed, checksum: 0 }
    const last = isCompared ? this.#entryAt(raft.lastIndex) : NO_ENTRY
    send(to, { requestStart: 0, answeredStart: 0, evidence: NO_ENTRY, committed, last, memory, ...what })
  }

  // --- comparisons ---

  /** `entry` was acknowledged here and is committed. */
  #checkOwn(from: NodeId, entry: EntryId): void {
    const { raft } = this.#options
    const committed = this.#committed
    if (entry.index <= committed.index) {
      // What is committed here has taken its place: the majority has agreed on another history since.
      this.#contradicts(from, entry)
      return
    }
    if (raft.termAt(entry.index) === entry.term || committed.term > entry.term) return
    throw new ContradictionError(
      `the disk of this member was set back: ${this.#nameOf(from)} remembers that entry ${entry.index} of term ${entry.term} was acknowledged here, and it is committed; the log here ends at entry ${raft.lastIndex} of term ${raft.termAt(raft.lastIndex)}`,
    )
  }

  /**
   * What `from` says about its history. True: it contradicts this member's history, and this is the later one, or
   * neither is.
   * @throws ContradictionError when this member must stop: its history is the earlier one, or a majority has another one
   */
  #compare(from: NodeId, { committed, last, evidence }: Statement): boolean {
    let found = this.#contradicts(from, committed)
    if (evidence.index <= committed.index) found = this.#contradicts(from, evidence) || found
    // Index and term name one entry, committed or not.
    for (const entry of [committed, last, evidence]) found = this.#differs(from, entry) || found
    return found
  }

  /** Compares by terms. `entry` is committed according to `from`. */
  #contradicts(from: NodeId, entry: EntryId): boolean {
    const { raft } = this.#options
    const committed = this.#committed
    if (entry.index === 0 || committed.index === 0) return false
    if (entry.index > committed.index) return committed.term > entry.term
    const term = raft.termAt(entry.index)
    // Terms never go down along a log: below its beginning they are at most the term there.
    const atMost = term ?? raft.termAt(raft.status.first - 1) ?? 0
    if (entry.term > atMost) {
      throw new ContradictionError(
        `a majority has gone on without entries that are committed here: ${this.#nameOf(from)} has entry ${entry.index} of term ${entry.term} committed, and this member has one of term ${term ?? `${atMost} at most`} there, committed up to entry ${committed.index} of term ${committed.term}; the disk of another member was set back, and grants in these entries are void`,
      )
    }
    return term !== undefined && term > entry.term
  }

  /** Whether `from` has another entry of the same index and term. */
  #differs(from: NodeId, entry: CheckedEntry): boolean {
    if (entry.checksum === 0 || this.#options.raft.termAt(entry.index) !== entry.term) return false
    if ([0, entry.checksum].includes(this.#checksumAt(entry.index))) return false
    this.#differing.add(from)
    this.#checkMajority(entry)
    return true
  }

  /** @throws ContradictionError when a majority of the voters has other entries of the same terms */
  #checkMajority({ index, term }: EntryId): void {
    const { configuration, commit } = this.#options.raft
    const differing = configuration.voters.filter((voter) => this.#differing.has(voter))
    if (differing.length * 2 <= configuration.voters.length) return
    const names = differing.map((voter) => this.#nameOf(voter)).join(' and ')
    throw new ContradictionError(
      `a majority has gone on without entries that are committed here: ${names} have another entry ${index} of term ${term} than this member, which has committed up to entry ${commit}; the disk of another member was set back, and grants in these entries are void`,
    )
  }

  #logContradiction(from: NodeId, theirs: EntryId): void {
    const committed = this.#committed
    this.#options.log.error('a member has committed other entries than this one: nothing it says is counted', {
      member: this.#nameOf(from),
      theirIndex: theirs.index,
      theirTerm: theirs.term,
      index: committed.index,
      term: committed.term,
      hint: 'the disk of a member was set back: the one that stops is to be started with --repair',
    })
  }

  #nameOf(node: NodeId): string {
    const name = this.#members.find((member) => member.node === node)?.name
    return name === undefined ? `node ${node}` : `${name} (node ${node})`
  }
}
