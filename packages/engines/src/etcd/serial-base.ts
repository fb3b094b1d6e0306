import { FLOOR_PER_MS, floorAt, StorageError } from '@leasehold/core'
import { type EpochRecord, serialOf } from './layout.js'

/** Serials that lag behind the floor of the clock by less than a second stay, so that not every connection writes. */
const LAG_MAX = 1_000 * FLOOR_PER_MS
/** Version of the epoch record: 2 has a base. */
const RECORD_FORMAT = 2

/**
 * The base with which serials start above those of an etcd that was lost, or of the revisions that a restored one
 * lost; undefined: the present base suffices. A restored etcd does not know what it lost, so only the clock can tell, and
 * a client that has seen later ones: the next serial is not below `atLeast`.
 */
export function baseFor(
  base: number,
  revision: number,
  wallMs: number,
  atLeast = 0,
): number | undefined | 'implausible' {
  const floor = floorAt(wallMs)
  const present = serialOf({ base }, revision)
  if (present < atLeast) return Math.max(atLeast, floor ?? 0) - serialOf({ base: 0 }, revision)
  if (floor === undefined) return 'implausible'
  if (present + LAG_MAX >= floor) return undefined
  return floor - serialOf({ base: 0 }, revision)
}

export function recordCluster(clusterId: bigint): string {
  return `${clusterId}/${RECORD_FORMAT}`
}

/** The id of the etcd cluster that the record was written in. @throws StorageError for a record of a newer version */
export function clusterOf({ cluster }: EpochRecord): string {
  const [id = '', format = '1'] = cluster.split('/')
  if (Number(format) <= RECORD_FORMAT) return id
  throw new StorageError(
    `the epoch record in etcd has format ${format}, and this version knows up to ${RECORD_FORMAT}`,
    {
      hint: 'upgrade this client to the version of the others',
    },
  )
}
