import type { Core } from './raft-state.js'
import { changeMembers, configurationOf, isJoint, MembershipError } from './membership.js'
import { appendOwn, broadcastAppend, maybeSendAppend, type Proposal, releaseEarlyReads } from './replication.js'
import type { Configuration, ConfigurationChange, ConfigurationStep, NodeId } from './types.js'

/** Why a configuration change may not be proposed now; undefined when it may. */
export function changeProblem(core: Core, change: ConfigurationChange): string | undefined {
  if (core.options.unchecked) return undefined
  const leave = change.steps.length === 0
  if (core.pendingConfiguration > core.log.applied) {
    return `a configuration change may be pending at index ${core.pendingConfiguration}, applied is ${core.log.applied}`
  }
  if (isJoint(core.members) && !leave) return 'the joint configuration must be left first'
  if (!isJoint(core.members) && leave) return 'there is no joint configuration to leave'
  return impossible(core, change)
}

/**
 * What would fail when the change is applied. Nothing is pending, so what is in force now is what it will meet: a change that
 * passes here cannot stop the members that apply it.
 */
function impossible(core: Core, change: ConfigurationChange): string | undefined {
  try {
    changeMembers(core.tracked, change, (isLearner) => core.newProgress(isLearner))
    return undefined
  } catch (error) {
    if (error instanceof MembershipError) return error.message
    throw error
  }
}

/** To be called when the program applies a configuration entry; returns what is in force from now on. */
export function applyChange(core: Core, change: ConfigurationChange): Configuration {
  const wasVoter = core.isVoter(core.id)
  core.tracked = changeMembers(core.tracked, change, (isLearner) => core.newProgress(isLearner))
  const isVoter = core.isVoter(core.id)
  if (isVoter) core.retiringAt = 0
  else if (wasVoter && (core.options.afterRemoval ?? 'handOver') === 'handOver') core.retiringAt = core.log.applied + 1
  switched(core)
  return configurationOf(core.members)
}

/** The configuration has changed: who is no voter leads no more, a smaller quorum may commit, new peers are probed. */
function switched(core: Core): void {
  core.trace?.(`${core.id} switched to configuration`)
  if (core.role !== 'leader' || core.members.voters.size === 0) return
  const own = core.progressOf(core.id)
  const demoted = own === undefined || own.isLearner
  if (demoted && core.options.afterRemoval === 'stay') return
  if (demoted && core.options.afterRemoval === 'stepDown') return core.becomeFollower(core.term, 0)
  if (core.maybeCommit()) {
    releaseEarlyReads(core)
    broadcastAppend(core)
  } else for (const id of core.peers()) maybeSendAppend(core, id, false)
  if (core.transferee !== 0 && !core.isVoter(core.transferee)) core.transferee = 0
  retire(core)
}

/** Makes `to` lead, once it has everything (thesis 3.10). */
export function transferTo(core: Core, to: NodeId): void {
  const progress = core.progressOf(to)
  if (progress === undefined || progress.isLearner || !core.isVoter(to)) return
  if (core.transferee === to) return
  core.transferee = 0
  if (to === core.id) return
  core.electionElapsed = 0
  core.transferee = to
  if (progress.match === core.log.lastIndex) core.send({ kind: 'timeoutNow', to })
  else maybeSendAppend(core, to, true)
}

/** A leader without a vote hands over to the voter that is furthest; called again until it has come about. */
export function retire(core: Core): void {
  if (!core.isRetiring || core.transferee !== 0) return
  const matchOf = (id: NodeId) => core.progressOf(id)?.match ?? 0
  const active = core.peers().filter((id) => core.members.voters.has(id) && core.progressOf(id)?.recentlyActive)
  const [best] = active.sort((a, b) => matchOf(b) - matchOf(a))
  if (best !== undefined) transferTo(core, best)
}

const NO_STEPS: readonly ConfigurationStep[] = []

/** A leader in a joint configuration that leaves by itself proposes to leave as soon as it has applied the entry. */
export function maybeLeaveJoint(core: Core): void {
  if (!core.members.autoLeave || core.role !== 'leader' || core.log.applied < core.pendingConfiguration) return
  const change: ConfigurationChange = { transition: 'auto', steps: NO_STEPS, context: new Uint8Array(0) }
  const proposal: Proposal = { kind: 'configuration', change }
  if (core.transferee !== 0 || !appendOwn(core, [proposal])) return
  core.pendingConfiguration = core.log.lastIndex
  broadcastAppend(core)
}
