import type { RaftState } from './raft-state.js'
import { changeProblem } from './configuration-entries.js'
import { appendOwn, broadcastAppend, entryOf, type Proposal } from './replication.js'

/** Appends the proposals at a leader, and forwards them at a follower with a known leader. Returns false if rejected. */
export function propose(state: RaftState, proposals: readonly Proposal[]): boolean {
  if (proposals.length === 0) return false
  if (state.role === 'follower') {
    if (state.leader === 0 || !state.rules.forwardProposals) return false
    const entries = proposals.map((one) => entryOf(one, 0, 0))
    state.send({ kind: 'propose', to: state.leader, entries })
    return true
  }
  return state.role === 'leader' && proposeAsLeader(state, proposals)
}

/** Appends the proposals. A change that may not be made now becomes an empty entry: a follower that forwarded it sees progress. */
export function proposeAsLeader(state: RaftState, proposals: readonly Proposal[]): boolean {
  if (state.isRetiring || state.progressOf(state.id) === undefined || state.transferee !== 0) return false
  const pendingBefore = state.pendingConfiguration
  const checked = proposals.map((one, i): Proposal => {
    if (one.kind === 'normal') return one
    if (changeProblem(state, one.change) !== undefined) return { kind: 'normal', data: new Uint8Array(0) }
    state.pendingConfiguration = state.log.lastIndex + i + 1
    return one
  })
  if (!appendOwn(state, checked)) {
    state.pendingConfiguration = pendingBefore
    return false
  }
  broadcastAppend(state)
  return true
}
