import type { Entry, Index, NodeId, SnapshotMeta, Term } from './types.js'

/**
 * Messages between members (thesis 3, 4, 6.4, 9.6). `append` and `heartbeat` come from a leader, votes from a candidate;
 * `propose`, `readIndex`, `transferLeader` and `forgetLeader` are requests that a follower hands on to its leader.
 */
export const MESSAGE_KINDS = [
  'append',
  'appendReply',
  'vote',
  'voteReply',
  'preVote',
  'preVoteReply',
  'heartbeat',
  'heartbeatReply',
  'snapshot',
  'timeoutNow',
  'propose',
  'readIndex',
  'readIndexReply',
  'transferLeader',
] as const

export type MessageKind = (typeof MESSAGE_KINDS)[number]

/**
 * One message. Which fields mean something depends on the kind; the others are 0. `snapshot` asks the program to deliver
 * the state up to `snapshot.index`, or something later, in pieces of its choice; the receiver's program steps the message
 * in when it has all of them.
 */
export interface Message {
  readonly kind: MessageKind
  readonly from: NodeId
  readonly to: NodeId
  /** 0 for requests that are handed on. */
  readonly term: Term
  /** Term of the entry at `index`; in a refused append that of the hint, in a refused vote that of `commit`. */
  readonly logTerm: Term
  /** `append`: the entry before `entries`. Votes: the candidate's last. Replies: the last that matches, or the refused one. */
  readonly index: Index
  readonly entries: readonly Entry[]
  /** What is committed as far as the sender knows; of an acknowledged append and a granted vote 0. */
  readonly commit: Index
  readonly reject: boolean
  /** In a refused append: where the follower's log may match. */
  readonly hint: Index
  /** `vote`: 1 when the election comes from a leadership transfer. Heartbeats and reads: the number of the read round. */
  readonly context: number
  readonly snapshot: SnapshotMeta | undefined
}

export type MessageFields = Partial<Omit<Message, 'kind' | 'to'>> & Pick<Message, 'kind' | 'to'>

const NO_ENTRIES: readonly Entry[] = []

export function message(fields: MessageFields, from = fields.from ?? 0, term = fields.term ?? 0): Message {
  return {
    kind: fields.kind,
    from,
    to: fields.to,
    term,
    logTerm: fields.logTerm ?? 0,
    index: fields.index ?? 0,
    entries: fields.entries ?? NO_ENTRIES,
    commit: fields.commit ?? 0,
    reject: fields.reject ?? false,
    hint: fields.hint ?? 0,
    context: fields.context ?? 0,
    snapshot: fields.snapshot,
  }
}

/**
 * What promises something durable: it leaves only after everything before it is on disk. Replies, and a candidate's request:
 * a member that has lost the term of its candidacy would stand in it once more, with the votes of the first time and
 * perhaps without the tail that they were given for.
 */
export function isGated(kind: MessageKind): boolean {
  return kind === 'appendReply' || kind === 'vote' || kind === 'voteReply' || kind === 'preVoteReply'
}

export function entryBytes(entry: Entry): number {
  return entry.kind === 'normal' ? entry.data.length : 16 + 12 * entry.change.steps.length + entry.change.context.length
}

/** Requests that a follower hands on to its leader: they belong to no term. */
export function isHandedOn(kind: MessageKind): boolean {
  return kind === 'propose' || kind === 'readIndex' || kind === 'transferLeader'
}

/** What no correct member would send to `self`; undefined when there is nothing to complain about. */
export function messageProblem(message: Message, self: NodeId): string | undefined {
  const { kind, from, to, term, index, logTerm, entries, snapshot } = message
  if (to !== self) return `${kind} for node ${to} came to node ${self}`
  if (!(Number.isSafeInteger(from) && from > 0)) return `${kind} from node ${from}`
  if (isHandedOn(kind)) {
    if (term !== 0) return `${kind} of term ${term}`
    return kind === 'propose' && entries.length === 0 ? 'a proposal of nothing' : undefined
  }
  if (!(Number.isSafeInteger(term) && term > 0)) return `${kind} of term ${term}`
  if (kind === 'snapshot') {
    const fits = snapshot !== undefined && snapshot.index > 0 && snapshot.term <= term
    return fits ? undefined : `a snapshot message of term ${term} without a snapshot that fits`
  }
  let last = logTerm
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry
    if (entry.index !== index + 1 + i) return `entry ${entry.index} at place ${i} after ${index}`
    if (entry.term < last || entry.term > term)
      return `entry ${entry.index} of term ${entry.term} after ${last}, in term ${term}`
    last = entry.term
  }
  return undefined
}
