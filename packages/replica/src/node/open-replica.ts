import { resolve } from 'node:path'
import type { Limits } from '@leasehold/core'
import type { BootstrapCluster, ReplicaOptions } from '../replica-options.js'
import type { Logger, Network } from '../platform.js'
import { noopNetwork, noopLogger } from '../noop.js'
import { Replica } from '../replica.js'
import { folderFailed } from '../storage/storage-errors.js'
import { NodeClock } from './node-clock.js'
import { NodeDisk } from './node-disk.js'
import { claimFolder } from './ownership/claim-folder.js'
import { NodeRandom } from './node-random.js'

export interface NodeReplicaOptions extends Omit<ReplicaOptions, 'platform' | 'bootstrap' | 'release' | 'name'> {
  /** The data folder; created if missing. */
  readonly dir: string
  /** Default `n1`. */
  readonly name?: string
  /** First epoch of an empty service; default 1. */
  readonly epoch?: number
  /** The token counter of an empty service starts above this floor; default: the floor of the machine's clock. */
  readonly floor?: number
  readonly limits?: Partial<Limits>
  /** The cluster that an empty folder joins; default: a new service with a single member. */
  readonly cluster?: BootstrapCluster
  /** Refuses an empty folder instead of bootstrapping a service in it. */
  readonly mustExist?: boolean
  /** Takes over the folder from an owner on another machine that is known to be dead. */
  readonly takeOver?: boolean
  /** Keeps the process alive while the member runs; default false. */
  readonly keepAlive?: boolean
  readonly log?: Logger
  readonly network?: Network
  /** Runs after every durable write to the log or a snapshot, with its duration in seconds. */
  readonly synced?: (seconds: number) => void
}

/**
 * Opens a data folder on this machine as its only owner. `stop` releases the folder.
 *
 * @throws StorageError when the folder has an owner, is damaged, or its disk is full or broken; InvalidError on invalid options
 *
 * @example
 * const member = await openNodeReplica({ dir: './data' })
 */
export async function openNodeReplica(options: NodeReplicaOptions): Promise<Replica> {
  const {
    dir,
    name = 'n1',
    epoch,
    floor,
    limits,
    cluster,
    mustExist,
    takeOver,
    keepAlive,
    log,
    network,
    synced,
    ...rest
  } = options
  const path = resolve(dir)
  const owner = await claimFolder(path, { name, takeOver: takeOver ?? false, serving: true })
  try {
    const platform = {
      disk: new NodeDisk(path, synced, owner),
      clock: new NodeClock(keepAlive),
      random: new NodeRandom(),
      network: network ?? noopNetwork,
      log: log ?? noopLogger,
    }
    platform.log.info('owns the data folder', { path, owner: owner.number, ...owner.facts })
    const bootstrap = mustExist
      ? undefined
      : {
          ...(epoch !== undefined && { epoch }),
          ...(floor !== undefined && { floor }),
          ...(limits && { limits }),
          ...(cluster && { cluster }),
        }
    const release = (done: () => void): void => {
      owner.release().then(done, done)
    }
    return await new Promise<Replica>((done, reject) => {
      Replica.open(
        {
          ...rest,
          name,
          platform,
          release,
          endLocalSessions: cluster === undefined,
          ...(bootstrap && { bootstrap: bootstrap }),
        },
        (error, result) => (result ? done(result) : reject(error)),
      )
    })
  } catch (error) {
    await owner.release()
    throw folderFailed(dir, error)
  }
}
