import type { RaftState } from './raft-state.js'
import { changeMembers, configurationOf, isJoint, MembershipError } from './membership.js'
import { retire } from './leadership-transfer.js'
import { appendOwn, broadcastAppend, maybeSendAppend, type Proposal, releaseEarlyReads } from './replication.js'
import type { Configuration, ConfigurationChange, ConfigurationStep } from './types.js'

/*
 * Apply-time configuration. A change takes effect at each member when the member applies its entry, not when it appends it
 * (the thesis, 4.1, has the latter). Any two quorums that are used at the same time must still intersect, so at most one
 * change may separate the configurations of any two members that can lead or vote. Three guards keep this invariant:
 *
 *   1. A leader proposes a change only after it has applied every earlier one (`changeProblem`).
 *   2. A new leader proposes none before it has applied its whole log, which may contain a change (`becomeLeader`).
 *   3. A member with a committed change that it has not applied does not stand for election (`standForElection`).
 */

/** Why a configuration change may not be proposed now; undefined if it may. */
export function changeProblem(state: RaftState, change: ConfigurationChange): string | undefined {
  if (!state.rules.checkChanges) return undefined
  const leave = change.steps.length === 0
  // Guard 1: the configuration in which this change would be applied is the one in force now.
  if (state.pendingConfiguration > state.log.applied) {
    return `a configuration change may be pending at index ${state.pendingConfiguration}, applied is ${state.log.applied}`
  }
  if (isJoint(state.members) && !leave) return 'the joint configuration must be left first'
  if (!isJoint(state.members) && leave) return 'there is no joint configuration to leave'
  return applyProblem(state, change)
}

/**
 * Why applying the change would fail. No other change is pending, so it is applied to the configuration in force now: a
 * change that passes cannot stop the members that apply it.
 */
function applyProblem(state: RaftState, change: ConfigurationChange): string | undefined {
  try {
    changeMembers(state.tracked, change, (isLearner) => state.newProgress(isLearner))
    return undefined
  } catch (error) {
    if (error instanceof MembershipError) return error.message
    throw error
  }
}

/** Applies a configuration entry. Returns the configuration that is in force from now on. */
export function applyChange(state: RaftState, change: ConfigurationChange): Configuration {
  const wasVoter = state.isVoter(state.id)
  state.tracked = changeMembers(state.tracked, change, (isLearner) => state.newProgress(isLearner))
  const isVoter = state.isVoter(state.id)
  if (isVoter) state.retiringAt = 0
  else if (wasVoter && state.rules.afterRemoval === 'handOver') state.retiringAt = state.log.applied + 1
  onSwitched(state)
  return configurationOf(state.members)
}

/** Acts on a new configuration: a smaller quorum may commit, new peers are probed, and a leader without a vote retires. */
function onSwitched(state: RaftState): void {
  state.trace?.(`${state.id} switched to configuration`)
  if (state.role !== 'leader' || state.members.voters.size === 0) return
  const own = state.progressOf(state.id)
  const demoted = own === undefined || own.isLearner
  if (demoted && state.rules.afterRemoval === 'stay') return
  if (demoted && state.rules.afterRemoval === 'stepDown') return state.becomeFollower(state.term, 0)
  if (state.maybeCommit()) {
    releaseEarlyReads(state)
    broadcastAppend(state)
  } else for (const id of state.peers()) maybeSendAppend(state, id, false)
  if (state.transferee !== 0 && !state.isVoter(state.transferee)) state.transferee = 0
  retire(state)
}

const NO_STEPS: readonly ConfigurationStep[] = []

/** Proposes to leave a joint configuration with `autoLeave` as soon as the leader has applied the entry that entered it. */
export function maybeLeaveJoint(state: RaftState): void {
  if (!state.members.autoLeave || state.role !== 'leader' || state.log.applied < state.pendingConfiguration) return
  const change: ConfigurationChange = { transition: 'auto', steps: NO_STEPS, context: new Uint8Array(0) }
  const proposal: Proposal = { kind: 'configuration', change }
  if (state.transferee !== 0 || !appendOwn(state, [proposal])) return
  state.pendingConfiguration = state.log.lastIndex
  broadcastAppend(state)
}
