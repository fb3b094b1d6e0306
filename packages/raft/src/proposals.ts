import type { RaftState } from './raft-state.js'
import { changeProblem } from './configuration-entries.js'
import { appendOwn, broadcastAppend, placed, type Proposal } from './replication.js'

/** Appends at a leader, hands on at a follower that knows one. False: refused. */
export function propose(state: RaftState, proposals: readonly Proposal[]): boolean {
  if (proposals.length === 0) return false
  if (state.role === 'follower') {
    if (state.leader === 0 || state.options.noForwarding) return false
    const entries = proposals.map((one) => placed(one, 0, 0))
    state.send({ kind: 'propose', to: state.leader, entries })
    return true
  }
  return state.role === 'leader' && proposeAsLeader(state, proposals)
}

/** Changes that may not be made now become empty entries: whoever handed them on sees the log move. */
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
