import { EPOCH_MAX, floorAt, InvalidError, LEVEL_MAX, LockState, type Serial, StorageError } from '@leasehold/core'
import type { BootstrapOptions, BootstrapCluster, ReplicaSettings } from '../replica-options.js'
import { mintCluster, mintNode } from './identity.js'
import { encodeMeta } from '../cluster-meta.js'
import { initializeFolder } from './storage.js'

/**
 * Bootstraps an empty folder: as the single member of a new cluster, with a node number and a cluster id minted here, or as a
 * member of the cluster that its founders agreed on. Writes the initial snapshot (index 0, equal for all founders) and the
 * identity. `isFounder`: the service starts with this member; otherwise the member joins an existing cluster.
 */
export function bootstrapFolder(
  settings: ReplicaSettings,
  done: (error: Error | undefined, isFounder: boolean) => void,
): void {
  const { bootstrap, name, platform } = settings
  if (!bootstrap) {
    throw new StorageError(`${platform.disk.path} is empty`, {
      hint: 'check the path: no service has ever run on this folder',
    })
  }
  const epoch = bootstrap.epoch ?? 1
  if (!Number.isSafeInteger(epoch) || epoch < 1 || epoch > EPOCH_MAX) {
    throw new InvalidError(`epoch is ${epoch}; it is between 1 and ${EPOCH_MAX}`)
  }
  const { id, node, founders, floor = 0, level = 1 } = bootstrap.cluster ?? alone(settings, bootstrap)
  if (level > LEVEL_MAX) {
    throw new InvalidError(
      `the cluster was founded at feature level ${level}, and this version knows up to ${LEVEL_MAX}`,
      {
        hint: 'start all members with the same version, the newer one',
      },
    )
  }
  const voters = founders.map((member) => member.node).sort((a, b) => a - b)
  if (new Set(voters).size !== voters.length || new Set(founders.map((member) => member.name)).size !== voters.length) {
    throw new InvalidError('two founders have the same name or number')
  }
  const configuration = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false }
  const meta = encodeMeta({ cluster: id, configuration, members: founders })
  const { limits } = bootstrap
  const state = LockState.create({ epoch, level, floor: floor as Serial, ...(limits && { limits }) })
  const snapshot = { index: 0, term: 0, meta, state: state.snapshot() }
  const isFounder = voters.includes(node)
  initializeFolder(platform.disk, { node, name, cluster: id, epoch }, snapshot, (error) => done(error, isFounder))
}

function alone(settings: ReplicaSettings, bootstrap: BootstrapOptions): BootstrapCluster {
  const { platform, name, url } = settings
  const node = mintNode(platform.random)
  const floor = bootstrap.floor ?? (settings.clockFloors ? bootstrapFloor(platform.clock.wallMs(), bootstrap.epoch) : 0)
  return { id: mintCluster(platform.random), node, founders: [{ node, name, peer: '', url }], floor, level: LEVEL_MAX }
}

/**
 * Returns the counter floor of a service that is bootstrapped at `wallMs` by the wall clock. With an explicit epoch, an
 * implausible clock gives floor 0: the epoch already puts the tokens above those of earlier services.
 * @throws InvalidError when the clock is implausible and no epoch is given
 */
export function bootstrapFloor(wallMs: number, epoch: number | undefined): number {
  const floor = floorAt(wallMs)
  if (floor !== undefined) return floor
  if (epoch !== undefined) return 0
  const shown = Number.isFinite(wallMs) ? `${Math.trunc(wallMs)} ms after 1970` : String(wallMs)
  throw new InvalidError(
    `the clock of this machine shows ${shown}, which cannot be right: tokens would start too low`,
    {
      hint: 'set the clock; or give an --epoch above that of every service that this one replaces',
    },
  )
}
