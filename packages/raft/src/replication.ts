import type { RaftState } from './raft-state.js'
import {
  type Append,
  type AppendReply,
  entryBytes,
  type Heartbeat,
  type HeartbeatReply,
  type InstallSnapshot,
} from './messages.js'
import type { Progress } from './progress.js'
import type { ConfigurationChange, Entry, Index, NodeId, SnapshotMeta, Term } from './types.js'

/** What a proposal asks for, before it has a place in the log. */
export type Proposal =
  | { readonly kind: 'normal'; readonly data: Uint8Array }
  | { readonly kind: 'configuration'; readonly change: ConfigurationChange }

/** The entry of a proposal. The fields are named one by one because a spread is many times slower, and this runs per entry. */
export function entryOf(proposal: Proposal, term: Term, index: Index): Entry {
  return proposal.kind === 'normal'
    ? { kind: 'normal', data: proposal.data, term, index }
    : { kind: 'configuration', change: proposal.change, term, index }
}

/** Appends to the leader's log; its own acknowledgement waits for the write. Returns false if too much is uncommitted. */
export function appendOwn(state: RaftState, proposals: readonly Proposal[]): boolean {
  let index = state.log.lastIndex
  const entries = proposals.map((one) => entryOf(one, state.term, ++index))
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  if (state.uncommittedBytes > 0 && bytes > 0 && state.uncommittedBytes + bytes > state.limits.uncommittedBytesMax)
    return false
  state.uncommittedBytes += bytes
  state.log.append(entries)
  state.send({ kind: 'appendReply', to: state.id, index: state.log.lastIndex })
  return true
}

export function broadcastAppend(state: RaftState): void {
  for (const id of state.peers()) maybeSendAppend(state, id, true)
}

/**
 * Sends a peer what it lacks, unless it is paused: entries from `next` on, an empty append with `evenEmpty`, or a snapshot if
 * the entries are compacted. Returns whether anything was sent.
 */
export function maybeSendAppend(state: RaftState, to: NodeId, evenEmpty: boolean): boolean {
  const progress = state.progressOf(to)
  if (progress === undefined || progress.isPaused) return false
  const previous = progress.next - 1
  const logTerm = state.log.termAt(previous)
  if (logTerm === undefined || !state.canFollow(to, previous)) return maybeSendSnapshot(state, to, progress)
  const room = progress.state !== 'replicate' || !progress.inflights.full
  const entries = room ? state.log.slice(progress.next, state.limits.appendBytesMax) : []
  if (entries.length === 0 && !evenEmpty) return false
  const commit = state.log.committed
  state.send({ kind: 'append', to, index: previous, logTerm, entries, commit })
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  progress.sentEntries(entries.length, bytes)
  progress.sent(commit)
  return true
}

/**
 * Offers a snapshot to a peer that needs compacted entries. The message has the least index that helps; the program sends
 * its snapshot in pieces of its choice and reports the outcome (`reportSnapshot`).
 */
function maybeSendSnapshot(state: RaftState, to: NodeId, progress: Progress): boolean {
  if (!progress.recentlyActive) return false
  const { snapshot } = state
  if (snapshot === undefined) {
    state.snapshotWanted = true
    return false
  }
  progress.becomeSnapshot(snapshot.index)
  state.send({ kind: 'snapshot', to, snapshot })
  return true
}

export function broadcastHeartbeat(state: RaftState, context = state.reads.newest): void {
  for (const to of state.peers()) {
    const progress = state.progressOf(to) as Progress
    // At most what the peer is known to have: it may have lost its tail, and must not commit another one.
    const commit = Math.min(progress.match, state.log.committed)
    state.send({ kind: 'heartbeat', to, commit, context })
    progress.sent(commit)
  }
}

/** Handles a follower's answer to an append. */
export function onAppendReply(state: RaftState, progress: Progress, reply: AppendReply): void {
  const { from } = reply
  // The peer has more than this log: it has another history, which it will notice by itself.
  if (!reply.reject && reply.index > state.log.lastIndex) return
  progress.recentlyActive = true
  if (reply.reject) {
    // Both sides skip entries that cannot match: the follower sent its last index whose term is not above the rejected one,
    // and entries of this log with a term above the follower's cannot match either.
    const hint = reply.logTerm > 0 ? state.log.findConflictByTerm(reply.hint, reply.logTerm).index : reply.hint
    if (!progress.maybeDecrease(reply.index, hint)) return
    if (progress.state === 'replicate') progress.becomeProbe()
    maybeSendAppend(state, from, true)
    return
  }
  if (!progress.maybeUpdate(reply.index) && !progress.isMetAt(reply.index)) return
  if (progress.state === 'probe') progress.becomeReplicate()
  else if (progress.state === 'snapshot') {
    if (progress.match + 1 >= state.log.firstIndex) {
      progress.becomeProbe()
      progress.becomeReplicate()
    }
  } else progress.inflights.freeUpTo(reply.index)
  if (state.maybeCommit()) {
    releaseEarlyReads(state)
    broadcastAppend(state)
  } else if (state.id !== from && progress.canBumpCommit(state.log.committed)) maybeSendAppend(state, from, true)
  if (state.id !== from) while (maybeSendAppend(state, from, false)) {}
  if (from === state.transferee && progress.match === state.log.lastIndex) state.send({ kind: 'timeoutNow', to: from })
}

export function onHeartbeatReply(state: RaftState, progress: Progress, reply: HeartbeatReply): void {
  progress.recentlyActive = true
  progress.paused = false
  if (progress.match < state.log.lastIndex || progress.state === 'probe') maybeSendAppend(state, reply.from, true)
  if (reply.context === 0) return
  state.reads.acknowledge(reply.context, reply.from)
  answerReads(state)
}

/** Opens a round for the reads that waited for the first commit of the term. */
export function releaseEarlyReads(state: RaftState): void {
  if (!state.hasCommittedInTerm) return
  const early = state.reads.takeEarly()
  if (early.length === 0) return
  broadcastHeartbeat(state, state.reads.open(state.log.committed, early, state.id))
  answerReads(state)
}

export function answerReads(state: RaftState): void {
  for (const { index, reads } of state.reads.takeConfirmed((acks) => state.isQuorum(acks))) {
    for (const { from, context } of reads) {
      if (from === state.id) state.readsReady.push({ context, index })
      else state.send({ kind: 'readIndexReply', to: from, context, index })
    }
  }
}

// --- the follower's side ---

export function onAppend(state: RaftState, append: Append): void {
  const { from, index, logTerm } = append
  state.log.assertAgrees({ term: logTerm, index }, append.entries)
  if (index < state.log.committed) {
    state.send({ kind: 'appendReply', to: from, index: state.log.committed })
    return
  }
  const matched = state.log.maybeAppend({ term: logTerm, index }, append.entries, append.commit)
  if (matched !== undefined) {
    state.send({ kind: 'appendReply', to: from, index: matched })
    return
  }
  const hint = state.log.findConflictByTerm(Math.min(index, state.log.lastIndex), logTerm)
  state.send({ kind: 'appendReply', to: from, index, reject: true, hint: hint.index, logTerm: hint.term })
}

export function onHeartbeat(state: RaftState, heartbeat: Heartbeat): void {
  state.log.commitTo(heartbeat.commit)
  state.send({ kind: 'heartbeatReply', to: heartbeat.from, context: heartbeat.context })
}

export function onSnapshot(state: RaftState, offer: InstallSnapshot): void {
  const restored = state.restore(offer.snapshot)
  state.send({ kind: 'appendReply', to: offer.from, index: restored ? state.log.lastIndex : state.log.committed })
}

/** Installs a snapshot that is durable here, of a leader whose term may have ended, and reports it to the current leader. */
export function onArrivedSnapshot(state: RaftState, meta: SnapshotMeta): void {
  if (meta.index <= state.log.committed) return
  // A candidate without committed entries cannot win.
  if (state.role === 'preCandidate' || state.role === 'candidate') state.becomeFollower(state.term, 0)
  const restored = state.restore(meta)
  if (state.leader === 0 || state.leader === state.id) return
  state.send({ kind: 'appendReply', to: state.leader, index: restored ? state.log.lastIndex : state.log.committed })
}
