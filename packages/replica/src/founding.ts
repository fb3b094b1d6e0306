import { EPOCH_MAX, InvalidError, LockState, StorageError } from '@leasehold/core'
import type { ReplicaSettings } from './driver/options.js'
import { mintNode } from './identity.js'
import { encodeMeta } from './members.js'
import { found } from './storage.js'

/**
 * Makes an empty folder the only member of a new service: mints its node number and the cluster's id, and writes the
 * founding snapshot (index 0) and the identity.
 */
export function foundFolder(settings: ReplicaSettings, done: (error: Error | undefined) => void): void {
  const { founding, name, url, platform } = settings
  if (!founding) {
    throw new StorageError(`${platform.disk.path} is empty`, {
      hint: 'check the path: no service has ever run on this folder',
    })
  }
  const epoch = founding.epoch ?? 1
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) {
    throw new InvalidError(`epoch is ${epoch}; it is between 1 and ${EPOCH_MAX}`)
  }
  const node = mintNode(platform.random)
  const cluster = Array.from(platform.random.bytes(16), (byte) => byte.toString(16).padStart(2, '0')).join('')
  const configuration = { voters: [node], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster, configuration, members: [{ node, name, peer: '', url }] })
  const state = LockState.create(founding.limits ? { epoch, limits: founding.limits } : { epoch })
  found(platform.disk, { node, name, cluster, epoch }, { index: 0, term: 0, meta, state: state.snapshot() }, done)
}
