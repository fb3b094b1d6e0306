import type { Entry, Index, NodeId, SnapshotMeta, Term } from './types.js'

/** Kinds of messages. Their order is part of the wire format: only ever add at the end. */
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

interface Envelope {
  readonly from: NodeId
  readonly to: NodeId
  /** The sender's term, or for pre-votes the term in question; 0 for forwarded requests. */
  readonly term: Term
}

/** A leader's entries after `index` (thesis 3.5). */
export interface Append extends Envelope {
  readonly kind: 'append'
  /** The index before `entries`, and the term of the entry there. */
  readonly index: Index
  readonly logTerm: Term
  readonly entries: readonly Entry[]
  /** The leader's commit index. */
  readonly commit: Index
}

export interface AppendReply extends Envelope {
  readonly kind: 'appendReply'
  /** Accepted: the last index that matches the leader's log and is durable. Rejected: the `index` of the append. */
  readonly index: Index
  readonly reject: boolean
  /** Of a rejection: the highest index at which the logs may match, and the follower's term there. */
  readonly hint: Index
  readonly logTerm: Term
}

/** A candidate's request for a vote, or a pre-candidate's question whether it would get one (thesis 3.4, 9.6). */
export interface VoteRequest extends Envelope {
  readonly kind: 'vote' | 'preVote'
  /** The candidate's last entry. */
  readonly index: Index
  readonly logTerm: Term
  /** 1 if the election was started by a leadership transfer. */
  readonly context: number
}

export interface VoteReply extends Envelope {
  readonly kind: 'voteReply' | 'preVoteReply'
  readonly reject: boolean
  /** Of a rejection: the voter's last entry that it knows to be committed; else 0. */
  readonly commit: Index
  readonly logTerm: Term
}

export interface Heartbeat extends Envelope {
  readonly kind: 'heartbeat'
  /** The leader's commit index, at most the follower's known match. */
  readonly commit: Index
  /** Number of the newest open read round; 0: none. */
  readonly context: number
}

export interface HeartbeatReply extends Envelope {
  readonly kind: 'heartbeatReply'
  /** That of the heartbeat. */
  readonly context: number
}

/**
 * Asks the sender's program to deliver its state up to `snapshot.index`, or a later one, in pieces of its choice. The
 * receiver's program steps the message once it has all of them.
 */
export interface InstallSnapshot extends Envelope {
  readonly kind: 'snapshot'
  readonly snapshot: SnapshotMeta
}

/** Makes the receiver stand for election at once (thesis 3.10). */
export interface TimeoutNow extends Envelope {
  readonly kind: 'timeoutNow'
}

/** Entries that a follower forwards to its leader; their terms and indexes are 0. */
export interface Propose extends Envelope {
  readonly kind: 'propose'
  readonly entries: readonly Entry[]
}

/** A follower's question for the index of a linearizable read (thesis 6.4). */
export interface ReadIndex extends Envelope {
  readonly kind: 'readIndex'
  /** The follower's number for the question. */
  readonly context: number
}

export interface ReadIndexReply extends Envelope {
  readonly kind: 'readIndexReply'
  readonly context: number
  /** The read may run once this index is applied. */
  readonly index: Index
}

/** Asks the leader to transfer leadership to `from`. */
export interface TransferLeader extends Envelope {
  readonly kind: 'transferLeader'
}

/** A message between members. */
export type Message =
  | Append
  | AppendReply
  | VoteRequest
  | VoteReply
  | Heartbeat
  | HeartbeatReply
  | InstallSnapshot
  | TimeoutNow
  | Propose
  | ReadIndex
  | ReadIndexReply
  | TransferLeader

export type MessageKind = Message['kind']

type FieldsOf<M> = M extends Message
  ? Pick<M, 'kind' | 'to' | Extract<keyof M, 'snapshot'>> & { readonly [K in keyof M]?: M[K] | undefined }
  : never

/** The fields of a message, of which those that are 0, false or empty may be left out. */
export type MessageFields = FieldsOf<Message>

const NO_ENTRIES: readonly Entry[] = []

/** Returns the message with these fields. */
export function message(fields: MessageFields, from = fields.from ?? 0, term = fields.term ?? 0): Message {
  const { to } = fields
  switch (fields.kind) {
    case 'append': {
      const { kind, index = 0, logTerm = 0, entries = NO_ENTRIES, commit = 0 } = fields
      return { kind, from, to, term, index, logTerm, entries, commit }
    }
    case 'appendReply': {
      const { kind, index = 0, reject = false, hint = 0, logTerm = 0 } = fields
      return { kind, from, to, term, index, reject, hint, logTerm }
    }
    case 'vote':
    case 'preVote': {
      const { kind, index = 0, logTerm = 0, context = 0 } = fields
      return { kind, from, to, term, index, logTerm, context }
    }
    case 'voteReply':
    case 'preVoteReply': {
      const { kind, reject = false, commit = 0, logTerm = 0 } = fields
      return { kind, from, to, term, reject, commit, logTerm }
    }
    case 'heartbeat': {
      const { kind, commit = 0, context = 0 } = fields
      return { kind, from, to, term, commit, context }
    }
    case 'heartbeatReply':
    case 'readIndex':
      return { kind: fields.kind, from, to, term, context: fields.context ?? 0 } as HeartbeatReply | ReadIndex
    case 'snapshot':
      return { kind: fields.kind, from, to, term, snapshot: fields.snapshot }
    case 'timeoutNow':
    case 'transferLeader':
      return { kind: fields.kind, from, to, term } as TimeoutNow | TransferLeader
    case 'propose':
      return { kind: fields.kind, from, to, term, entries: fields.entries ?? NO_ENTRIES }
    case 'readIndexReply': {
      const { kind, context = 0, index = 0 } = fields
      return { kind, from, to, term, context, index }
    }
  }
}

/**
 * Whether a message promises something durable and so leaves only after everything before it is on disk. These are
 * acknowledgements and votes, and also a candidate's request: a member that lost the term of its candidacy in a crash would
 * stand in the same term again, and could be elected by votes that were given for a longer log.
 */
export function isGated(kind: MessageKind): boolean {
  return kind === 'appendReply' || kind === 'vote' || kind === 'voteReply' || kind === 'preVoteReply'
}

/** The size of an entry, as far as limits are concerned. */
export function entryBytes(entry: Entry): number {
  return entry.kind === 'normal' ? entry.data.length : 16 + 12 * entry.change.steps.length + entry.change.context.length
}

/** Whether a message is a request that a follower forwards to its leader. It belongs to no term. */
export function isForwarded(kind: MessageKind): boolean {
  return kind === 'propose' || kind === 'readIndex' || kind === 'transferLeader'
}

/** What is wrong with a message that no correct member would send to `self`; undefined when it is sound. */
export function messageProblem(message: Message, self: NodeId): string | undefined {
  const { kind, from, to, term } = message
  if (to !== self) return `${kind} for node ${to} came to node ${self}`
  if (!(Number.isSafeInteger(from) && from > 0)) return `${kind} from node ${from}`
  if (isForwarded(kind)) {
    if (term !== 0) return `${kind} of term ${term}`
    return message.kind === 'propose' && message.entries.length === 0 ? 'a proposal without entries' : undefined
  }
  if (!(Number.isSafeInteger(term) && term > 0)) return `${kind} of term ${term}`
  if (message.kind === 'snapshot') {
    const { snapshot } = message
    const fits = snapshot !== undefined && snapshot.index > 0 && snapshot.term <= term
    return fits ? undefined : `a snapshot message of term ${term} without a snapshot that fits`
  }
  return message.kind === 'append' ? entriesProblem(message) : undefined
}

function entriesProblem({ index, logTerm, entries, term }: Append): string | undefined {
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
