import type { Core } from './raft-state.js'
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
export function standForElection(core: Core, campaign: Campaign): void {
  if (core.role === 'leader' || !core.isPromotable || hasUnappliedConfiguration(core)) return
  core.trace?.(`${core.id} is starting a new election at term ${core.term}`)
  campaignAs(core, campaign)
}

function hasUnappliedConfiguration(core: Core): boolean {
  for (let index = core.log.applied + 1; index <= core.log.committed; index++) {
    if (core.log.entry(index)?.kind === 'configuration') return true
  }
  return false
}

function campaignAs(core: Core, campaign: Campaign): void {
  const pre = campaign === 'preVote'
  if (pre) core.becomePreCandidate()
  else core.becomeCandidate()
  const term = pre ? core.term + 1 : core.term
  const last = core.log.lastId
  for (const to of core.voterIds()) {
    if (to === core.id) {
      // The own vote counts once it is durable, like everybody's.
      core.send({ kind: pre ? 'preVoteReply' : 'voteReply', to, term })
      continue
    }
    const context = campaign === 'transfer' ? FROM_TRANSFER : 0
    core.send({ kind: pre ? 'preVote' : 'vote', to, term, index: last.index, logTerm: last.term, context })
  }
}

/** Whether a request for votes is to be ignored, because a leader was heard from within an election timeout. */
export function isSticky(core: Core, request: Message): boolean {
  return (
    request.context !== FROM_TRANSFER &&
    core.checkQuorum &&
    core.leader !== 0 &&
    core.electionElapsed < core.limits.electionTicks
  )
}

/** Answers a request for a (pre-)vote (thesis 3.4, 3.6.1, 9.6). */
export function onVoteRequest(core: Core, request: Message): void {
  const pre = request.kind === 'preVote'
  const free = core.vote === request.from || (core.vote === 0 && core.leader === 0) || (pre && request.term > core.term)
  const kind = pre ? 'preVoteReply' : 'voteReply'
  if (!free || !core.log.isUpToDate({ term: request.logTerm, index: request.index })) {
    core.send({ kind, to: request.from, term: core.term, reject: true, ...knownCommit(core) })
    return
  }
  // A pre-vote is answered at the term that is asked about, not at ours: the candidate ignores other terms.
  core.send({ kind, to: request.from, term: request.term })
  if (pre) return
  core.electionElapsed = 0
  core.vote = request.from
}

/** The last entry that is known to be committed, for a refusal to tell. */
function knownCommit({ log }: Core): { commit: Index; logTerm: Term } {
  return { commit: log.committed, logTerm: log.termAt(log.committed) as Term }
}

/**
 * A refusal says what is committed. A candidate that has that entry learns it: of two voters one may have applied the end of
 * its own vote, and refuse for its longer log, but not stand for election any more. Whoever learns of a change by it stands
 * anew once that is applied. True: the election is over.
 */
export function learnCommit(core: Core, { commit: index, logTerm: term, reject }: Message): boolean {
  if (!reject || index <= core.log.committed || !core.log.matches({ term, index })) return false
  core.log.commitTo(index)
  if (!hasUnappliedConfiguration(core)) return false
  core.becomeFollower(core.term, 0)
  return true
}

/** Counts an answer; votes are kept by voter, so a duplicate changes nothing. */
export function onVoteReply(core: Core, from: NodeId, granted: boolean): void {
  if (!core.votes.has(from)) core.votes.set(from, granted)
  const result = core.voteResult()
  if (result === 'lost') {
    core.becomeFollower(core.term, 0)
    return
  }
  if (result !== 'won') return
  if (core.role === 'preCandidate') campaignAs(core, 'vote')
  else {
    core.becomeLeader()
    appendOwn(core, [{ kind: 'normal', data: new Uint8Array(0) }])
    broadcastAppend(core)
  }
}
