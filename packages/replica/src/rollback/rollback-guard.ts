import { crc32, Writer } from '@leasehold/core'
import type { Index, Message, NodeId, Raft } from '@leasehold/raft'
import type { Identity } from '../storage/identity.js'
import { writeContent } from '../log/entry-codec.js'
import type { MemberInfo } from '../cluster-meta.js'
import type { Logger, Random } from '../platform.js'
import { ContradictionError } from '../storage/storage-errors.js'
import type { Statement, StatementToWrite } from '../wire/statements.js'
import { type AcknowledgedMemory, type CheckedEntry, type EntryId, isLater, NO_ENTRY } from './acknowledged-memory.js'

/** A peer that sends consensus messages for this many election timeouts without a statement has an older version. */
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
  /** Whether the peer has reported to this start what it remembers. Its consensus messages count then. */
  cleared: boolean
  /** Whether the peer has sent a statement, so its version supports them. */
  makesStatements: boolean
  /** Whether the peer's committed history conflicts with this member's and is not known to be the later one. */
  contradicts: boolean
  /** The start number in the peer's latest request. */
  start: number
  /** The tick at which a consensus message from the peer was first rejected. */
  deferredAt: number | undefined
  askedAt: number
}

/**
 * Detects a member whose disk was set back: by restoring a snapshot of its virtual machine or an old copy of its data folder.
 * Such a member has forgotten votes and acknowledgements, and a majority that counts it may lack committed entries.
 *
 * A disk can go back only while the member is down, and the other members may remember what it has forgotten. So after each
 * start, a member accepts nothing from a peer until that peer has reported what it remembers: the highest committed entry
 * that this member acknowledged. The member compares that with its own log, and stops when its log has less. Until then it
 * neither votes nor acknowledges, since both only respond to accepted messages.
 *
 * The comparison never stops a healthy member, no matter how late, often or out of order frames arrive: a committed entry that
 * a member has acknowledged is never truncated, so "you have entry 120 of term 3" remains true once it is true, and the log is
 * read when the statement arrives, which is after the acknowledgement. Only a response that clears a peer must belong to this
 * start: it contains the number that this start has drawn. Uncommitted acknowledgements are not remembered, because those
 * entries may be truncated.
 *
 * If all members that remember were down, a majority may have continued without some committed entries. When one of them
 * returns, two histories conflict. A majority agreed on each of them at its time; the one with the later term where they
 * differ is the current majority's. So every statement includes what is committed at its sender. The member with the earlier
 * term stops; the one with the later term continues and ignores the other. A term that a disk has forgotten may have been
 * reused by another leader, so that the terms are equal and only the entries differ: then the member that differs from a
 * majority of the voters stops.
 *
 * The check is best effort. A contradiction in the compacted part of a log shows only in the terms, and an earlier one only
 * in the state hashes. Members of an older version send no statements; they are cleared after a while.
 */
export class RollbackGuard {
  readonly #options: RollbackGuardOptions
  /** A random number for this start, so that responses to an earlier start do not count for this one. */
  readonly #start: number
  readonly #peers = new Map<NodeId, PeerState>()
  #members: readonly MemberInfo[] = []
  /** Members with different entries of the same index and term. */
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

  /** Whether a consensus message is accepted. If not, requests a statement from its sender. */
  admits(message: Message): boolean {
    const { from } = message
    const peer = this.#peer(from)
    if (!peer.cleared || peer.contradicts) {
      peer.deferredAt ??= this.#ticks
      if (peer.askedAt !== this.#ticks) this.#requestStatement(from, peer)
      return false
    }
    if (message.kind !== 'vote' && message.kind !== 'preVote') return true
    // The candidate's log lacks what it has acknowledged: it has not compared yet, or the message is old.
    const known = this.#options.memory.get(from)
    return known === undefined || !isLater(known, { index: message.index, term: message.logTerm })
  }

  /** @throws ContradictionError when this member must stop */
  receive(from: NodeId, statement: Statement): void {
    const { memory, identity } = this.#options
    const { requestStart, answeredStart, committed, acknowledged } = statement
    const peer = this.#peer(from)
    peer.makesStatements = true
    // The peer was restarted, perhaps with another disk: compare again.
    if (requestStart !== 0 && requestStart !== peer.start && peer.start !== 0) peer.cleared = false
    if (requestStart !== 0) peer.start = requestStart
    for (const [node, entry] of acknowledged) {
      if (node === identity.node) this.#checkOwn(from, entry)
      else if (this.#members.some((member) => member.node === node)) memory.note(node, entry)
    }
    const contradicts = this.#compare(from, statement)
    // Replied to without a request only once: otherwise two conflicting members would reply to each other forever.
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
      log.info('a member of an older version sends no statements', { member: this.#nameOf(node) })
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
      // The next tick sends a request.
      const askedAt = Number.NEGATIVE_INFINITY
      peer = { cleared: false, makesStatements: false, contradicts: false, start: 0, deferredAt: undefined, askedAt }
      this.#peers.set(node, peer)
    }
    return peer
  }

  /** Records which committed entries voters have acknowledged, as the leader counts them. */
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

  /** Sends a statement. Periodic ones have no checksums, whose cost grows with the entry. */
  #sendStatement(to: NodeId, what: Partial<Pick<Statement, 'requestStart' | 'answeredStart' | 'evidence'>>): void {
    const { memory, send, raft } = this.#options
    const isCompared = what.requestStart !== undefined
    const committed = isCompared ? this.#entryAt(raft.commit) : { ...this.#committed, checksum: 0 }
    const last = isCompared ? this.#entryAt(raft.lastIndex) : NO_ENTRY
    send(to, { requestStart: 0, answeredStart: 0, evidence: NO_ENTRY, committed, last, memory, ...what })
  }

  // --- comparisons ---

  /** Checks an entry that `from` remembers as acknowledged here and committed. @throws ContradictionError when it is missing */
  #checkOwn(from: NodeId, entry: EntryId): void {
    const { raft } = this.#options
    const committed = this.#committed
    if (entry.index <= committed.index) {
      // Another committed entry has taken its place: the majority has agreed on another history since.
      this.#contradicts(from, entry)
      return
    }
    if (raft.termAt(entry.index) === entry.term || committed.term > entry.term) return
    throw new ContradictionError(
      `the disk of this member was set back: ${this.#nameOf(from)} remembers that entry ${entry.index} of term ${entry.term} was acknowledged here, and it is committed; the log here ends at entry ${raft.lastIndex} of term ${raft.termAt(raft.lastIndex)}`,
    )
  }

  /**
   * Compares the history of `from` with this member's. Returns whether they conflict and this member may continue.
   * @throws ContradictionError when this member must stop: its history is the earlier one, or a majority has another one
   */
  #compare(from: NodeId, { committed, last, evidence }: Statement): boolean {
    let found = this.#contradicts(from, committed)
    if (evidence.index <= committed.index) found = this.#contradicts(from, evidence) || found
    // Index and term identify an entry, committed or not.
    for (const entry of [committed, last, evidence]) found = this.#differs(from, entry) || found
    return found
  }

  /** Compares the terms of an entry that is committed at `from`. */
  #contradicts(from: NodeId, entry: EntryId): boolean {
    const { raft } = this.#options
    const committed = this.#committed
    if (entry.index === 0 || committed.index === 0) return false
    if (entry.index > committed.index) return committed.term > entry.term
    const term = raft.termAt(entry.index)
    // Terms never decrease along a log: before its first entry they are at most the term there.
    const atMost = term ?? raft.termAt(raft.status.first - 1) ?? 0
    if (entry.term > atMost) {
      throw new ContradictionError(
        `a majority has gone on without entries that are committed here: ${this.#nameOf(from)} has entry ${entry.index} of term ${entry.term} committed, and this member has one of term ${term ?? `${atMost} at most`} there, committed up to entry ${committed.index} of term ${committed.term}; the disk of another member was set back, and grants in these entries are void`,
      )
    }
    return term !== undefined && term > entry.term
  }

  /** Whether `from` has a different entry of the same index and term. */
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
    this.#options.log.error('a member has committed other entries than this one: its messages are ignored', {
      member: this.#nameOf(from),
      theirIndex: theirs.index,
      theirTerm: theirs.term,
      index: committed.index,
      term: committed.term,
      hint: 'the disk of a member was set back: start the one that stops with --repair',
    })
  }

  #nameOf(node: NodeId): string {
    const name = this.#members.find((member) => member.node === node)?.name
    return name === undefined ? `node ${node}` : `${name} (node ${node})`
  }
}
