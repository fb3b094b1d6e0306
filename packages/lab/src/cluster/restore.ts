import { LEVEL_MAX, LockState, type Serial } from '@leasehold/core'
import { encodeMeta, type BootstrapCluster, SnapshotStore, writeIdentity } from '@leasehold/replica'
import type { SimulatedMember } from './simulated-member.js'

const US_PER_MS = 1000

/**
 * Makes an empty disk that of a service of one, which continues from a backup of the state under a higher epoch: the
 * snapshot first, then the identity, with the code that members write theirs with. `floor`: no counter value up to it is
 * granted; 0 without floors.
 */
export function restoreTo(
  member: SimulatedMember,
  founding: BootstrapCluster,
  backup: Uint8Array,
  { epoch, floor }: { readonly epoch: number; readonly floor: Serial },
  done: (state: LockState) => void,
): void {
  const { world } = member.machine
  const disk = member.disk.mount({
    after: (delayMs, action) => void world.after(Math.ceil(delayMs * US_PER_MS), 'restore', action),
    effect: () => true,
  })
  const { state } = LockState.restore(backup).withEpoch(epoch, { floor, level: LEVEL_MAX })
  const { id, node, founders } = founding
  const configuration = { voters: [node], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster: id, configuration, members: founders })
  const fail = (error: Error | undefined): void => {
    if (error) throw error
  }
  const snapshots = new SnapshotStore(disk, { reserveBytes: 0, changed() {} })
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
