import type { RaftState } from './raft-state.js'
import { isSticky, learnCommit, onVoteReply, onVoteRequest, standForElection } from './election.js'
import type { Message } from './messages.js'
import { proposeAsLeader } from './proposals.js'
import { transferTo } from './configuration-entries.js'
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

/** Takes a message in: the term rules first (thesis 3.3), then whoever handles it in this role. */
export function dispatch(state: RaftState, message: Message): void {
  if (message.term > state.term && !adoptTerm(state, message)) return
  if (message.term !== 0 && message.term < state.term) return answerOldTerm(state, message)
  if (message.kind === 'vote' || message.kind === 'preVote') onVoteRequest(state, message)
  else if (state.role === 'leader') stepLeader(state, message)
  else if (state.role === 'follower') stepFollower(state, message)
  else stepCandidate(state, message)
}

/** A later term makes everybody a follower; a pre-vote changes nobody. False: the message is to be ignored. */
function adoptTerm(state: RaftState, message: Message): boolean {
  const { kind } = message
  if ((kind === 'vote' || kind === 'preVote') && isSticky(state, message)) return false
  if (kind === 'preVote' || (kind === 'preVoteReply' && !message.reject)) return true
  const fromLeader = kind === 'append' || kind === 'heartbeat' || kind === 'snapshot'
  state.becomeFollower(message.term, fromLeader ? message.from : 0)
  return true
}

function answerOldTerm(state: RaftState, message: Message): void {
  if ((state.checkQuorum || state.preVote) && (message.kind === 'heartbeat' || message.kind === 'append')) {
    // A leader of an old term learns ours, and makes way: it could neither win nor lose an election otherwise.
    state.send({ kind: 'appendReply', to: message.from })
  } else if (message.kind === 'preVote') {
    state.send({ kind: 'preVoteReply', to: message.from, term: state.term, reject: true })
  }
}

function stepLeader(state: RaftState, message: Message): void {
  if (message.kind === 'propose') {
    proposeAsLeader(
      state,
      message.entries.map(
        (entry): Proposal =>
          entry.kind === 'normal'
            ? { kind: 'normal', data: entry.data }
            : { kind: 'configuration', change: entry.change },
      ),
    )
    return
  }
  if (message.kind === 'transferLeader') return transferTo(state, message.from)
  const progress = state.progressOf(message.from)
  if (progress === undefined) return
  if (message.kind === 'appendReply') onAppendReply(state, progress, message)
  else if (message.kind === 'heartbeatReply') onHeartbeatReply(state, progress, message)
  else if (message.kind === 'readIndex') readAsLeader(state, message.from, message.context)
}

function stepCandidate(state: RaftState, message: Message): void {
  const { kind } = message
  if (kind === 'append' || kind === 'heartbeat' || kind === 'snapshot') {
    state.becomeFollower(message.term, message.from)
    stepFollower(state, message)
  } else if ((kind === 'preVoteReply' || kind === 'voteReply') && learnCommit(state, message)) {
    return
  } else if (state.role === 'preCandidate' && kind === 'preVoteReply') {
    // A grant names the term that was asked about: one for an earlier question says nothing about this one.
    if (message.reject || message.term === state.term + 1) onVoteReply(state, message.from, !message.reject)
  } else if (state.role === 'candidate' && kind === 'voteReply') onVoteReply(state, message.from, !message.reject)
}

function stepFollower(state: RaftState, message: Message): void {
  const { kind } = message
  if (kind === 'append' || kind === 'heartbeat' || kind === 'snapshot') {
    state.electionElapsed = 0
    state.leader = message.from
    if (message.commit >= state.retiringAt) state.retiringAt = 0
    if (kind === 'append') onAppend(state, message)
    else if (kind === 'heartbeat') onHeartbeat(state, message)
    else onSnapshot(state, message)
  } else if (kind === 'timeoutNow') standForElection(state, 'transfer')
  else if (kind === 'readIndexReply') onReadReply(state, message)
  else if (state.leader !== 0 && (kind === 'propose' || kind === 'readIndex' || kind === 'transferLeader')) {
    if (kind !== 'propose' || !state.options.noForwarding) state.send({ ...message, to: state.leader })
  }
}

function onReadReply(state: RaftState, reply: Message): void {
  const context = state.handedReads.answer(reply.context)
  if (context !== undefined) state.readsReady.push({ context, index: reply.index })
}

/** Opens a round for a read, or lets it wait for the first commit of the term. False: too many wait. */
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
