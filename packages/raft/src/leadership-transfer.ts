import type { RaftState } from './raft-state.js'
import { maybeSendAppend } from './replication.js'
import type { NodeId } from './types.js'

/** Transfers leadership to the voter `to` once it has the whole log (thesis 3.10). */
export function transferTo(state: RaftState, to: NodeId): void {
  const progress = state.progressOf(to)
  if (progress === undefined || progress.isLearner || !state.isVoter(to)) return
  if (state.transferee === to) return
  state.transferee = 0
  if (to === state.id) return
  state.electionElapsed = 0
  state.transferee = to
  if (progress.match === state.log.lastIndex) state.send({ kind: 'timeoutNow', to })
  else maybeSendAppend(state, to, true)
}

/** The best voter to lead next: active recently, with the longest matching log. Undefined if there is none. */
export function successorOf(state: RaftState): NodeId | undefined {
  const matchOf = (id: NodeId) => state.progressOf(id)?.match ?? 0
  const active = state.peers().filter((id) => state.members.voters.has(id) && state.progressOf(id)?.recentlyActive)
  return active.sort((a, b) => matchOf(b) - matchOf(a))[0]
}

/** Makes a leader without a vote transfer leadership to its successor. Repeated until a transfer is under way. */
export function retire(state: RaftState): void {
  if (!state.isRetiring || state.transferee !== 0) return
  const best = successorOf(state)
  if (best !== undefined) transferTo(state, best)
}
