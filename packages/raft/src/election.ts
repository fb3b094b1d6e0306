import type { RaftState } from './raft-state.js'
import type { VoteReply, VoteRequest } from './messages.js'
import { broadcastAppend, appendOwn } from './replication.js'
import type { Index, NodeId, Term } from './types.js'

export type Campaign = 'preVote' | 'vote' | 'transfer'

/** The context of a vote in a leadership transfer: it is not rejected although a leader was heard from recently. */
const FROM_TRANSFER = 1

/**
 * Stands for election if this member may.
 *
 * Guard 3 of apply-time configuration (see configuration-entries.ts): a member with a committed change that it has not
 * applied does not stand, because it would count votes by a configuration that is no longer the latest committed one.
 */
export function standForElection(state: RaftState, campaign: Campaign): void {
  if (state.role === 'leader' || !state.isPromotable || hasUnappliedConfiguration(state)) return
  state.trace?.(`${state.id} is starting a new election at term ${state.term}`)
  campaignAs(state, campaign)
}

function hasUnappliedConfiguration(state: RaftState): boolean {
  for (let index = state.log.applied + 1; index <= state.log.committed; index++) {
    if (state.log.entry(index)?.kind === 'configuration') return true
  }
  return false
}

function campaignAs(state: RaftState, campaign: Campaign): void {
  const pre = campaign === 'preVote'
  if (pre) state.becomePreCandidate()
  else state.becomeCandidate()
  const term = pre ? state.term + 1 : state.term
  const last = state.log.lastId
  for (const to of state.voterIds()) {
    if (to === state.id) {
      // This member's own vote counts once it is durable, like any other.
      state.send({ kind: pre ? 'preVoteReply' : 'voteReply', to, term })
      continue
    }
    const context = campaign === 'transfer' ? FROM_TRANSFER : 0
    state.send({ kind: pre ? 'preVote' : 'vote', to, term, index: last.index, logTerm: last.term, context })
  }
}

/** Whether a vote request is ignored because a leader was heard from within the shortest election timeout. */
export function isSticky(state: RaftState, request: VoteRequest): boolean {
  return (
    request.context !== FROM_TRANSFER &&
    state.rules.checkQuorum &&
    state.leader !== 0 &&
    state.electionElapsed < state.limits.electionTicks
  )
}

/** Answers a (pre-)vote request (thesis 3.4, 3.6.1, 9.6). */
export function onVoteRequest(state: RaftState, request: VoteRequest): void {
  const pre = request.kind === 'preVote'
  const free =
    state.vote === request.from || (state.vote === 0 && state.leader === 0) || (pre && request.term > state.term)
  const kind = pre ? 'preVoteReply' : 'voteReply'
  if (!free || !state.log.isUpToDate({ term: request.logTerm, index: request.index })) {
    state.send({ kind, to: request.from, term: state.term, reject: true, ...knownCommit(state) })
    return
  }
  // A granted pre-vote has the term in question, not this member's: the candidate ignores other terms.
  state.send({ kind, to: request.from, term: request.term })
  if (pre) return
  state.electionElapsed = 0
  state.vote = request.from
}

/** The last entry known to be committed, which a rejection reports. */
function knownCommit({ log }: RaftState): { commit: Index; logTerm: Term } {
  return { commit: log.committed, logTerm: log.termAt(log.committed) as Term }
}

/**
 * Learns the commit index from a rejected (pre-)vote, if this candidate has the entry. Without this, two voters could block
 * each other: one has applied the end of its own vote, so it does not stand, and rejects the other for its shorter log. A
 * candidate that thereby learns of a configuration change steps down, and stands again once the change is applied. Returns
 * whether it has stepped down.
 */
export function learnCommit(state: RaftState, { commit: index, logTerm: term, reject }: VoteReply): boolean {
  if (!reject || index <= state.log.committed || !state.log.matches({ term, index })) return false
  state.log.commitTo(index)
  if (!hasUnappliedConfiguration(state)) return false
  state.becomeFollower(state.term, 0)
  return true
}

/** Counts an answer, the first one of each voter. */
export function onVoteReply(state: RaftState, from: NodeId, granted: boolean): void {
  if (!state.votes.has(from)) state.votes.set(from, granted)
  const result = state.voteResult()
  if (result === 'lost') {
    state.becomeFollower(state.term, 0)
    return
  }
  if (result !== 'won') return
  if (state.role === 'preCandidate') campaignAs(state, 'vote')
  else {
    state.becomeLeader()
    appendOwn(state, [{ kind: 'normal', data: new Uint8Array(0) }])
    broadcastAppend(state)
  }
}
