import type { Core } from './raft-state.js'
import { changeProblem } from './configuration-entries.js'
import { appendOwn, broadcastAppend, placed, type Proposal } from './replication.js'

/** Appends at a leader, hands on at a follower that knows one. False: refused. */
export function propose(core: Core, proposals: readonly Proposal[]): boolean {
  if (proposals.length === 0) return false
  if (core.role === 'follower') {
    if (core.leader === 0 || core.options.noForwarding) return false
    const entries = proposals.map((one) => placed(one, 0, 0))
    core.send({ kind: 'propose', to: core.leader, entries })
    return true
  }
  return core.role === 'leader' && proposeAsLeader(core, proposals)
}

/** Changes that may not be made now become empty entries: whoever handed them on sees the log move. */
export function proposeAsLeader(core: Core, proposals: readonly Proposal[]): boolean {
  if (core.isRetiring || core.progressOf(core.id) === undefined || core.transferee !== 0) return false
  const pendingBefore = core.pendingConfiguration
  const checked = proposals.map((one, i): Proposal => {
    if (one.kind === 'normal') return one
    if (changeProblem(core, one.change) !== undefined) return { kind: 'normal', data: new Uint8Array(0) }
    core.pendingConfiguration = core.log.lastIndex + i + 1
    return one
  })
  if (!appendOwn(core, checked)) {
    core.pendingConfiguration = pendingBefore
    return false
  }
  broadcastAppend(core)
  return true
}
