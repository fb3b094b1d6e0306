import type { RaftState } from './raft-state.js'
import { isSticky, learnCommit, onVoteReply, onVoteRequest, standForElection } from './election.js'
import type { Append, Heartbeat, InstallSnapshot, Message, Propose, ReadIndexReply, VoteReply } from './messages.js'
import { proposeAsLeader } from './proposals.js'
import { transferTo } from './leadership-transfer.js'
import {
  answerReads,
  broadcastHeartbeat,
  onAppend,
  onAppendReply,
  onHeartbeat,
  onHeartbeatReply,
  onSnapshot,
  type Proposal,
} from './replication.js'
import type { NodeId } from './types.js'

/** Handles a message: first the rules of terms (thesis 3.3), then what the kind means in the current role. */
export function dispatch(state: RaftState, message: Message): void {
  if (message.term > state.term && !adoptTerm(state, message)) return
  if (message.term !== 0 && message.term < state.term) return answerOldTerm(state, message)
  if (message.kind === 'vote' || message.kind === 'preVote') onVoteRequest(state, message)
  else if (state.role === 'leader') stepLeader(state, message)
  else if (state.role === 'follower') stepFollower(state, message)
  else stepCandidate(state, message)
}

/** Follows a later term, except for pre-votes, which change nothing. Returns false if the message is to be ignored. */
function adoptTerm(state: RaftState, message: Message): boolean {
  if ((message.kind === 'vote' || message.kind === 'preVote') && isSticky(state, message)) return false
  if (message.kind === 'preVote' || (message.kind === 'preVoteReply' && !message.reject)) return true
  state.becomeFollower(message.term, isFromLeader(message) ? message.from : 0)
  return true
}

function isFromLeader(message: Message): message is Append | Heartbeat | InstallSnapshot {
  return message.kind === 'append' || message.kind === 'heartbeat' || message.kind === 'snapshot'
}

function answerOldTerm(state: RaftState, message: Message): void {
  const { preVote, checkQuorum } = state.rules
  if ((checkQuorum || preVote) && (message.kind === 'heartbeat' || message.kind === 'append')) {
    // The leader of an old term learns the current one and steps down; otherwise it could neither win nor lose an election.
    state.send({ kind: 'appendReply', to: message.from })
  } else if (message.kind === 'preVote') {
    state.send({ kind: 'preVoteReply', to: message.from, term: state.term, reject: true })
  }
}

function stepLeader(state: RaftState, message: Message): void {
  if (message.kind === 'propose') {
    proposeAsLeader(state, proposalsOf(message))
    return
  }
  if (message.kind === 'transferLeader') return transferTo(state, message.from)
  const progress = state.progressOf(message.from)
  if (progress === undefined) return
  if (message.kind === 'appendReply') onAppendReply(state, progress, message)
  else if (message.kind === 'heartbeatReply') onHeartbeatReply(state, progress, message)
  else if (message.kind === 'readIndex') readAsLeader(state, message.from, message.context)
}

function proposalsOf({ entries }: Propose): Proposal[] {
  return entries.map((entry) =>
    entry.kind === 'normal' ? { kind: 'normal', data: entry.data } : { kind: 'configuration', change: entry.change },
  )
}

function stepCandidate(state: RaftState, message: Message): void {
  if (isFromLeader(message)) {
    state.becomeFollower(message.term, message.from)
    followLeader(state, message)
  } else if (message.kind === 'preVoteReply' || message.kind === 'voteReply') countVote(state, message)
}

function countVote(state: RaftState, reply: VoteReply): void {
  if (learnCommit(state, reply)) return
  if (state.role === 'preCandidate' && reply.kind === 'preVoteReply') {
    // A grant has the term that was asked about: one for an earlier question does not answer this one.
    if (reply.reject || reply.term === state.term + 1) onVoteReply(state, reply.from, !reply.reject)
  } else if (state.role === 'candidate' && reply.kind === 'voteReply') onVoteReply(state, reply.from, !reply.reject)
}

function stepFollower(state: RaftState, message: Message): void {
  if (isFromLeader(message)) followLeader(state, message)
  else if (message.kind === 'timeoutNow') standForElection(state, 'transfer')
  else if (message.kind === 'readIndexReply') onReadReply(state, message)
  else if (state.leader === 0) return
  else if (message.kind === 'propose') {
    if (state.rules.forwardProposals) state.send({ ...message, to: state.leader })
  } else if (message.kind === 'readIndex' || message.kind === 'transferLeader') {
    state.send({ ...message, to: state.leader })
  }
}

function followLeader(state: RaftState, message: Append | Heartbeat | InstallSnapshot): void {
  state.electionElapsed = 0
  state.leader = message.from
  if (message.kind === 'snapshot') return onSnapshot(state, message)
  if (message.commit >= state.retiringAt) state.retiringAt = 0
  if (message.kind === 'append') onAppend(state, message)
  else onHeartbeat(state, message)
}

function onReadReply(state: RaftState, reply: ReadIndexReply): void {
  const context = state.forwardedReads.answer(reply.context)
  if (context !== undefined) state.readsReady.push({ context, index: reply.index })
}

/** Opens a round for a read, or lets it wait for the first commit of the term. Returns false if too many reads wait. */
export function readAsLeader(state: RaftState, from: NodeId, context: number): boolean {
  if (state.reads.full) return false
  if (!state.hasCommittedInTerm) state.reads.wait({ from, context })
  else {
    const round = state.reads.open(state.log.committed, [{ from, context }], state.id)
    if (!state.isSingleton || state.peers().length > 0) broadcastHeartbeat(state, round)
    answerReads(state)
  }
  return true
}
