import type { Core } from './core.js'
import { changeMembers, configurationOf, isJoint, kindOf } from './membership.js'
import { appendOwn, broadcastAppend, maybeSendAppend, type Proposal, releaseEarlyReads } from './replication.js'
import type { Configuration, ConfigurationChange, ConfigurationStep } from './types.js'

/** Why a configuration change may not be proposed now; undefined when it may. */
export function changeProblem(core: Core, change: ConfigurationChange): string | undefined {
  if (core.options.unchecked) return undefined
  const leave = change.steps.length === 0
  if (core.pendingConfiguration > core.log.applied) {
    return `a configuration change may be pending at index ${core.pendingConfiguration}, applied is ${core.log.applied}`
  }
  if (isJoint(core.members) && !leave) return 'the joint configuration must be left first'
  if (!isJoint(core.members) && leave) return 'there is no joint configuration to leave'
  return undefined
}

/** To be called when the program applies a configuration entry; returns what is in force from now on. */
export function applyChange(core: Core, change: ConfigurationChange): Configuration {
  core.tracked = changeMembers(core.tracked, change, (isLearner) => core.newProgress(isLearner))
  switched(core)
  return configurationOf(core.members)
}

/** The configuration has changed: who is no voter leads no more, a smaller quorum may commit, new peers are probed. */
function switched(core: Core): void {
  core.trace?.(`${core.id} switched to configuration`)
  const own = core.progressOf(core.id)
  if ((own === undefined || own.isLearner) && core.role === 'leader') {
    if (!core.options.leadOnAfterRemoval) core.becomeFollower(core.term, 0)
    return
  }
  if (core.role !== 'leader' || core.members.voters.size === 0) return
  if (core.maybeCommit()) {
    releaseEarlyReads(core)
    broadcastAppend(core)
  } else for (const id of core.peers()) maybeSendAppend(core, id, false)
  if (core.transferee !== 0 && !core.isVoter(core.transferee)) core.transferee = 0
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

export { kindOf }
