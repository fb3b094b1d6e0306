import { queue, redisLock, redlock, revision, shedlock, zookeeper } from '../../baselines/index.js'
import type { World } from '../../world/index.js'
import type { SystemSpec } from '../format.js'
import type { LockSystem, SystemFactory } from '../system.js'
import { cluster } from './cluster-system.js'
import { leasehold } from './leasehold-system.js'

/** The production service, and the baselines. */
const SYSTEMS: Readonly<Record<string, SystemFactory>> = {
  leasehold,
  redlock,
  redis: redisLock,
  zookeeper,
  revision,
  shedlock,
  queue,
  cluster,
}

export const SYSTEM_KINDS: readonly string[] = Object.keys(SYSTEMS)

export function systemOf(world: World, spec: SystemSpec): LockSystem {
  const factory = SYSTEMS[spec.kind]
  if (factory === undefined) throw new Error(`no system ${spec.kind}; there are ${SYSTEM_KINDS.join(', ')}`)
  return factory(world, spec)
}
