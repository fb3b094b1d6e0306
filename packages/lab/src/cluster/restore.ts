import { LockState } from '@leasehold/core'
import { encodeMeta, type FoundingCluster, Snapshots, writeIdentity } from '@leasehold/replica'
import type { SimulatedMember } from './member.js'

const US_PER_MS = 1000

/**
 * Makes an empty disk that of a service of one, which goes on from a backup of the state under a higher epoch: the
 * snapshot first, then the identity, with the code that members write theirs with.
 */
export function restoreTo(
  member: SimulatedMember,
  founding: FoundingCluster,
  backup: Uint8Array,
  epoch: number,
  done: (state: LockState) => void,
): void {
  const { world } = member.machine
  const disk = member.disk.mount({
    after: (delayMs, action) => void world.after(Math.ceil(delayMs * US_PER_MS), 'restore', action),
    effect: () => true,
  })
  const { state } = LockState.restore(backup).withEpoch(epoch)
  const { id, node, founders } = founding
  const configuration = { voters: [node], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster: id, configuration, members: founders })
  const fail = (error: Error | undefined): void => {
    if (error) throw error
  }
  const snapshots = new Snapshots(disk, { reserveBytes: 0, changed() {} })
  const content = { index: state.index, term: 1, meta, state: state.snapshot() }
  snapshots.save(
    content,
    (failed) => {
      fail(failed)
      writeIdentity(disk, { node, name: member.name, cluster: id, epoch }, (error) => {
        fail(error)
        done(LockState.restore(content.state))
      })
    },
    { reserve: false },
  )
}
