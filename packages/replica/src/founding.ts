import { EPOCH_MAX, InvalidError, LockState, StorageError } from '@leasehold/core'
import type { FoundingCluster, ReplicaSettings } from './driver/options.js'
import { mintCluster, mintNode } from './identity.js'
import { encodeMeta } from './members.js'
import { found } from './storage.js'

/**
 * Makes an empty folder a member's: alone, with a node number and a cluster id minted here, or in the cluster that its
 * founders have agreed on. Writes the founding snapshot (index 0, the same for all founders) and the identity.
 */
export function foundFolder(settings: ReplicaSettings, done: (error: Error | undefined) => void): void {
  const { founding, name, platform } = settings
  if (!founding) {
    throw new StorageError(`${platform.disk.path} is empty`, {
      hint: 'check the path: no service has ever run on this folder',
    })
  }
  const epoch = founding.epoch ?? 1
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) {
    throw new InvalidError(`epoch is ${epoch}; it is between 1 and ${EPOCH_MAX}`)
  }
  const { id, node, founders } = founding.cluster ?? alone(settings)
  const voters = founders.map((member) => member.node).sort((a, b) => a - b)
  if (new Set(voters).size !== voters.length || new Set(founders.map((member) => member.name)).size !== voters.length) {
    throw new InvalidError('two founders have the same name or number')
  }
  const configuration = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster: id, configuration, members: founders })
  const state = LockState.create(founding.limits ? { epoch, limits: founding.limits } : { epoch })
  const snapshot = { index: 0, term: 0, meta, state: state.snapshot() }
  found(platform.disk, { node, name, cluster: id, epoch }, snapshot, done)
}

function alone({ platform, name, url }: ReplicaSettings): FoundingCluster {
  const node = mintNode(platform.random)
  return { id: mintCluster(platform.random), node, founders: [{ node, name, peer: '', url }] }
}
