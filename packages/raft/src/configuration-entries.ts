import type { RaftState } from './raft-state.js'
import { changeMembers, configurationOf, isJoint, MembershipError } from './membership.js'
import { appendOwn, broadcastAppend, maybeSendAppend, type Proposal, releaseEarlyReads } from './replication.js'
import type { Configuration, ConfigurationChange, ConfigurationStep, NodeId } from './types.js'

/** Why a configuration change may not be proposed now; undefined when it may. */
export function changeProblem(state: RaftState, change: ConfigurationChange): string | undefined {
  if (state.options.unchecked) return undefined
  const leave = change.steps.length === 0
  if (state.pendingConfiguration > state.log.applied) {
    return `a configuration change may be pending at index ${state.pendingConfiguration}, applied is ${state.log.applied}`
  }
  if (isJoint(state.members) && !leave) return 'the joint configuration must be left first'
  if (!isJoint(state.members) && leave) return 'there is no joint configuration to leave'
  return impossible(state, change)
}

/**
 * What would fail when the change is applied. Nothing is pending, so what is in force now is what it will meet: a change that
 * passes here cannot stop the members that apply it.
 */
function impossible(state: RaftState, change: ConfigurationChange): string | undefined {
  try {
    changeMembers(state.tracked, change, (isLearner) => state.newProgress(isLearner))
    return undefined
  } catch (error) {
    if (error instanceof MembershipError) return error.message
    throw error
  }
}

/** To be called when the program applies a configuration entry; returns what is in force from now on. */
export function applyChange(state: RaftState, change: ConfigurationChange): Configuration {
  const wasVoter = state.isVoter(state.id)
  state.tracked = changeMembers(state.tracked, change, (isLearner) => state.newProgress(isLearner))
  const isVoter = state.isVoter(state.id)
  if (isVoter) state.retiringAt = 0
  else if (wasVoter && (state.options.afterRemoval ?? 'handOver') === 'handOver')
    state.retiringAt = state.log.applied + 1
  switched(state)
  return configurationOf(state.members)
}

/** The configuration has changed: who is no voter leads no more, a smaller quorum may commit, new peers are probed. */
function switched(state: RaftState): void {
  state.trace?.(`${state.id} switched to configuration`)
  if (state.role !== 'leader' || state.members.voters.size === 0) return
  const own = state.progressOf(state.id)
  const demoted = own === undefined || own.isLearner
  if (demoted && state.options.afterRemoval === 'stay') return
  if (demoted && state.options.afterRemoval === 'stepDown') return state.becomeFollower(state.term, 0)
  if (state.maybeCommit()) {
    releaseEarlyReads(state)
    broadcastAppend(state)
  } else for (const id of state.peers()) maybeSendAppend(state, id, false)
  if (state.transferee !== 0 && !state.isVoter(state.transferee)) state.transferee = 0
  retire(state)
}

/** Makes `to` lead, once it has everything (thesis 3.10). */
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

/** The best voter to lead next: active recently, with the longest matching log. Undefined when there is none. */
export function successorOf(state: RaftState): NodeId | undefined {
  const matchOf = (id: NodeId) => state.progressOf(id)?.match ?? 0
  const active = state.peers().filter((id) => state.members.voters.has(id) && state.progressOf(id)?.recentlyActive)
  return active.sort((a, b) => matchOf(b) - matchOf(a))[0]
}

/** Makes a leader without a vote hand over. Called again until a transfer is under way. */
export function retire(state: RaftState): void {
  if (!state.isRetiring || state.transferee !== 0) return
  const best = successorOf(state)
  if (best !== undefined) transferTo(state, best)
}

const NO_STEPS: readonly ConfigurationStep[] = []

/** A leader in a joint configuration that leaves by itself proposes to leave as soon as it has applied the entry. */
export function maybeLeaveJoint(state: RaftState): void {
  if (!state.members.autoLeave || state.role !== 'leader' || state.log.applied < state.pendingConfiguration) return
  const change: ConfigurationChange = { transition: 'auto', steps: NO_STEPS, context: new Uint8Array(0) }
  const proposal: Proposal = { kind: 'configuration', change }
  if (state.transferee !== 0 || !appendOwn(state, [proposal])) return
  state.pendingConfiguration = state.log.lastIndex
  broadcastAppend(state)
}
