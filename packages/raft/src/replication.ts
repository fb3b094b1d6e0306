import type { Core } from './raft-state.js'
import { entryBytes, type Message } from './messages.js'
import type { Progress } from './progress.js'
import type { ConfigurationChange, Entry, Index, NodeId, SnapshotMeta, Term } from './types.js'

/** What a proposal asks for, before it has a place in the log. */
export type Proposal =
  | { readonly kind: 'normal'; readonly data: Uint8Array }
  | { readonly kind: 'configuration'; readonly change: ConfigurationChange }

/** A proposal at its place in the log. The fields one by one: a spread is many times as slow, and every entry comes through here. */
export function placed(proposal: Proposal, term: Term, index: Index): Entry {
  return proposal.kind === 'normal'
    ? { kind: 'normal', data: proposal.data, term, index }
    : { kind: 'configuration', change: proposal.change, term, index }
}

/** Appends to the own log; the own acknowledgement waits for the write like everybody's. False: too much uncommitted. */
export function appendOwn(core: Core, proposals: readonly Proposal[]): boolean {
  let index = core.log.lastIndex
  const entries = proposals.map((one) => placed(one, core.term, ++index))
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  if (core.uncommittedBytes > 0 && bytes > 0 && core.uncommittedBytes + bytes > core.limits.uncommittedBytesMax)
    return false
  core.uncommittedBytes += bytes
  core.log.append(entries)
  core.send({ kind: 'appendReply', to: core.id, index: core.log.lastIndex })
  return true
}

export function broadcastAppend(core: Core): void {
  for (const id of core.peers()) maybeSendAppend(core, id, true)
}

/**
 * Sends the peer what it lacks, if it may be sent something now: entries after `next`, an empty append where one is
 * useful, or a snapshot when the entries are compacted. False if nothing was sent.
 */
export function maybeSendAppend(core: Core, to: NodeId, evenEmpty: boolean): boolean {
  const progress = core.progressOf(to)
  if (progress === undefined || progress.isPaused) return false
  const previous = progress.next - 1
  const logTerm = core.log.termAt(previous)
  if (logTerm === undefined || !core.canFollow(to, previous)) return maybeSendSnapshot(core, to, progress)
  const room = progress.state !== 'replicate' || !progress.inflights.full
  const entries = room ? core.log.slice(progress.next, core.limits.appendBytesMax) : []
  if (entries.length === 0 && !evenEmpty) return false
  const commit = core.log.committed
  core.send({ kind: 'append', to, index: previous, logTerm, entries, commit })
  let bytes = 0
  for (const entry of entries) bytes += entryBytes(entry)
  progress.sentEntries(entries.length, bytes)
  progress.sent(commit)
  return true
}

/**
 * The peer needs entries that are compacted. The message names the least that helps; the program sends its own snapshot in
 * pieces of its choice, and says how that ended (`snapshotDelivered`, `snapshotFailed`).
 */
function maybeSendSnapshot(core: Core, to: NodeId, progress: Progress): boolean {
  if (!progress.recentlyActive) return false
  const snapshot = core.snapshotMeta()
  if (snapshot === undefined) {
    core.snapshotWanted = true
    return false
  }
  progress.becomeSnapshot(snapshot.index)
  core.send({ kind: 'snapshot', to, snapshot })
  return true
}

export function broadcastHeartbeat(core: Core, context = core.reads.newest): void {
  for (const to of core.peers()) {
    const progress = core.progressOf(to) as Progress
    // Never more than the peer is known to have: it may have lost its tail, and must not be told to commit that.
    const commit = Math.min(progress.match, core.log.committed)
    core.send({ kind: 'heartbeat', to, commit, context })
    progress.sent(commit)
  }
}

/** A follower's answer to an append, at the leader. */
export function onAppendReply(core: Core, progress: Progress, reply: Message): void {
  const { from } = reply
  // Committed there, and not in this log: the peer's history is another one. It finds that out by itself.
  if (!reply.reject && reply.index > core.log.lastIndex) return
  progress.recentlyActive = true
  if (reply.reject) {
    // Both sides look for the place where the logs can meet: the follower sent the last index whose term is not above
    // the refused one, and entries of ours above the follower's term cannot match either.
    const hint = reply.logTerm > 0 ? core.log.findConflictByTerm(reply.hint, reply.logTerm).index : reply.hint
    if (!progress.maybeDecrease(reply.index, hint)) return
    if (progress.state === 'replicate') progress.becomeProbe()
    maybeSendAppend(core, from, true)
    return
  }
  if (!progress.maybeUpdate(reply.index) && !progress.isMetAt(reply.index)) return
  if (progress.state === 'probe') progress.becomeReplicate()
  else if (progress.state === 'snapshot') {
    if (progress.match + 1 >= core.log.firstIndex) {
      progress.becomeProbe()
      progress.becomeReplicate()
    }
  } else progress.inflights.freeUpTo(reply.index)
  if (core.maybeCommit()) {
    releaseEarlyReads(core)
    broadcastAppend(core)
  } else if (core.id !== from && progress.canBumpCommit(core.log.committed)) maybeSendAppend(core, from, true)
  if (core.id !== from) while (maybeSendAppend(core, from, false)) {}
  if (from === core.transferee && progress.match === core.log.lastIndex) core.send({ kind: 'timeoutNow', to: from })
}

export function onHeartbeatReply(core: Core, progress: Progress, reply: Message): void {
  progress.recentlyActive = true
  progress.paused = false
  if (progress.match < core.log.lastIndex || progress.state === 'probe') maybeSendAppend(core, reply.from, true)
  if (reply.context === 0) return
  core.reads.acknowledge(reply.context, reply.from)
  answerReads(core)
}

/** Opens the round of reads that waited for the first commit of the term. */
export function releaseEarlyReads(core: Core): void {
  if (!core.hasCommittedInTerm) return
  const early = core.reads.takeEarly()
  if (early.length === 0) return
  broadcastHeartbeat(core, core.reads.open(core.log.committed, early, core.id))
  answerReads(core)
}

export function answerReads(core: Core): void {
  for (const { index, reads } of core.reads.takeConfirmed((acks) => core.isQuorum(acks))) {
    for (const { from, context } of reads) {
      if (from === core.id) core.readsReady.push({ context, index })
      else core.send({ kind: 'readIndexReply', to: from, context, index })
    }
  }
}

// --- the follower's side ---

export function onAppend(core: Core, append: Message): void {
  const { from, index, logTerm } = append
  core.log.assertAgrees({ term: logTerm, index }, append.entries)
  if (index < core.log.committed) {
    core.send({ kind: 'appendReply', to: from, index: core.log.committed })
    return
  }
  const matched = core.log.maybeAppend({ term: logTerm, index }, append.entries, append.commit)
  if (matched !== undefined) {
    core.send({ kind: 'appendReply', to: from, index: matched })
    return
  }
  const hint = core.log.findConflictByTerm(Math.min(index, core.log.lastIndex), logTerm)
  core.send({ kind: 'appendReply', to: from, index, reject: true, hint: hint.index, logTerm: hint.term })
}

export function onHeartbeat(core: Core, heartbeat: Message): void {
  core.log.commitTo(heartbeat.commit)
  core.send({ kind: 'heartbeatReply', to: heartbeat.from, context: heartbeat.context })
}

export function onSnapshot(core: Core, offer: Message): void {
  const restored = core.restore(offer.snapshot)
  core.send({ kind: 'appendReply', to: offer.from, index: restored ? core.log.lastIndex : core.log.committed })
}

/** A snapshot that is durable here, of a leader whose term may be over. The present leader learns of it. */
export function onArrivedSnapshot(core: Core, meta: SnapshotMeta): void {
  if (meta.index <= core.log.committed) return
  // Without what is committed no election can be won.
  if (core.role === 'preCandidate' || core.role === 'candidate') core.becomeFollower(core.term, 0)
  const restored = core.restore(meta)
  if (core.leader === 0 || core.leader === core.id) return
  core.send({ kind: 'appendReply', to: core.leader, index: restored ? core.log.lastIndex : core.log.committed })
}
