import type { Core } from './raft-state.js'
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
export function dispatch(core: Core, message: Message): void {
  if (message.term > core.term && !adoptTerm(core, message)) return
  if (message.term !== 0 && message.term < core.term) return answerOldTerm(core, message)
  if (message.kind === 'vote' || message.kind === 'preVote') onVoteRequest(core, message)
  else if (core.role === 'leader') stepLeader(core, message)
  else if (core.role === 'follower') stepFollower(core, message)
  else stepCandidate(core, message)
}

/** A later term makes everybody a follower; a pre-vote changes nobody. False: the message is to be ignored. */
function adoptTerm(core: Core, message: Message): boolean {
  const { kind } = message
  if ((kind === 'vote' || kind === 'preVote') && isSticky(core, message)) return false
  if (kind === 'preVote' || (kind === 'preVoteReply' && !message.reject)) return true
  const fromLeader = kind === 'append' || kind === 'heartbeat' || kind === 'snapshot'
  core.becomeFollower(message.term, fromLeader ? message.from : 0)
  return true
}

function answerOldTerm(core: Core, message: Message): void {
  if ((core.checkQuorum || core.preVote) && (message.kind === 'heartbeat' || message.kind === 'append')) {
    // A leader of an old term learns ours, and makes way: it could neither win nor lose an election otherwise.
    core.send({ kind: 'appendReply', to: message.from })
  } else if (message.kind === 'preVote') {
    core.send({ kind: 'preVoteReply', to: message.from, term: core.term, reject: true })
  }
}

function stepLeader(core: Core, message: Message): void {
  if (message.kind === 'propose') {
    proposeAsLeader(
      core,
      message.entries.map(
        (entry): Proposal =>
          entry.kind === 'normal'
            ? { kind: 'normal', data: entry.data }
            : { kind: 'configuration', change: entry.change },
      ),
    )
    return
  }
  if (message.kind === 'transferLeader') return transferTo(core, message.from)
  const progress = core.progressOf(message.from)
  if (progress === undefined) return
  if (message.kind === 'appendReply') onAppendReply(core, progress, message)
  else if (message.kind === 'heartbeatReply') onHeartbeatReply(core, progress, message)
  else if (message.kind === 'readIndex') readAsLeader(core, message.from, message.context)
}

function stepCandidate(core: Core, message: Message): void {
  const { kind } = message
  if (kind === 'append' || kind === 'heartbeat' || kind === 'snapshot') {
    core.becomeFollower(message.term, message.from)
    stepFollower(core, message)
  } else if ((kind === 'preVoteReply' || kind === 'voteReply') && learnCommit(core, message)) {
    return
  } else if (core.role === 'preCandidate' && kind === 'preVoteReply') {
    // A grant names the term that was asked about: one for an earlier question says nothing about this one.
    if (message.reject || message.term === core.term + 1) onVoteReply(core, message.from, !message.reject)
  } else if (core.role === 'candidate' && kind === 'voteReply') onVoteReply(core, message.from, !message.reject)
}

function stepFollower(core: Core, message: Message): void {
  const { kind } = message
  if (kind === 'append' || kind === 'heartbeat' || kind === 'snapshot') {
    core.electionElapsed = 0
    core.leader = message.from
    if (message.commit >= core.retiringAt) core.retiringAt = 0
    if (kind === 'append') onAppend(core, message)
    else if (kind === 'heartbeat') onHeartbeat(core, message)
    else onSnapshot(core, message)
  } else if (kind === 'timeoutNow') standForElection(core, 'transfer')
  else if (kind === 'readIndexReply') onReadReply(core, message)
  else if (core.leader !== 0 && (kind === 'propose' || kind === 'readIndex' || kind === 'transferLeader')) {
    if (kind !== 'propose' || !core.options.noForwarding) core.send({ ...message, to: core.leader })
  }
}

function onReadReply(core: Core, reply: Message): void {
  const context = core.handedReads.answer(reply.context)
  if (context !== undefined) core.readsReady.push({ context, index: reply.index })
}

/** Opens a round for a read, or lets it wait for the first commit of the term. False: too many wait. */
export function readAsLeader(core: Core, from: NodeId, context: number): boolean {
  if (core.reads.full) return false
  if (!core.hasCommittedInTerm) core.reads.wait({ from, context })
  else {
    const round = core.reads.open(core.log.committed, [{ from, context }], core.id)
    if (!core.isSingleton || core.peers().length > 0) broadcastHeartbeat(core, round)
    answerReads(core)
  }
  return true
}
