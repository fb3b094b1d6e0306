import type { RaftState } from './raft-state.js'
import type { Message } from './messages.js'
import { broadcastAppend, appendOwn } from './replication.js'
import type { Index, NodeId, Term } from './types.js'

export type Campaign = 'preVote' | 'vote' | 'transfer'

/** The context of a vote that a leader has asked for: it is not refused because a leader was heard from lately. */
const FROM_TRANSFER = 1

/**
 * Stands for election, if this member may: a voter, whose state is whole, with no committed configuration change that it
 * has not applied (its idea of the quorum would be out of date).
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
      // The own vote counts once it is durable, like everybody's.
      state.send({ kind: pre ? 'preVoteReply' : 'voteReply', to, term })
      continue
    }
    const context = campaign === 'transfer' ? FROM_TRANSFER : 0
    state.send({ kind: pre ? 'preVote' : 'vote', to, term, index: last.index, logTerm: last.term, context })
  }
}

/** Whether a request for votes is to be ignored, because a leader was heard from within an election timeout. */
export function isSticky(state: RaftState, request: Message): boolean {
  return (
    request.context !== FROM_TRANSFER &&
    state.checkQuorum &&
    state.leader !== 0 &&
    state.electionElapsed < state.limits.electionTicks
  )
}

/** Answers a request for a (pre-)vote (thesis 3.4, 3.6.1, 9.6). */
export function onVoteRequest(state: RaftState, request: Message): void {
  const pre = request.kind === 'preVote'
  const free =
    state.vote === request.from || (state.vote === 0 && state.leader === 0) || (pre && request.term > state.term)
  const kind = pre ? 'preVoteReply' : 'voteReply'
  if (!free || !state.log.isUpToDate({ term: request.logTerm, index: request.index })) {
    state.send({ kind, to: request.from, term: state.term, reject: true, ...knownCommit(state) })
    return
  }
  // A pre-vote is answered at the term that is asked about, not at ours: the candidate ignores other terms.
  state.send({ kind, to: request.from, term: request.term })
  if (pre) return
  state.electionElapsed = 0
  state.vote = request.from
}

/** The last entry that is known to be committed, for a refusal to tell. */
function knownCommit({ log }: RaftState): { commit: Index; logTerm: Term } {
  return { commit: log.committed, logTerm: log.termAt(log.committed) as Term }
}

/**
 * A refusal says what is committed. A candidate that has that entry learns it: of two voters one may have applied the end of
 * its own vote, and refuse for its longer log, but not stand for election any more. Whoever learns of a change by it stands
 * anew once that is applied. True: the election is over.
 */
export function learnCommit(state: RaftState, { commit: index, logTerm: term, reject }: Message): boolean {
  if (!reject || index <= state.log.committed || !state.log.matches({ term, index })) return false
  state.log.commitTo(index)
  if (!hasUnappliedConfiguration(state)) return false
  state.becomeFollower(state.term, 0)
  return true
}

/** Counts an answer; votes are kept by voter, so a duplicate changes nothing. */
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
