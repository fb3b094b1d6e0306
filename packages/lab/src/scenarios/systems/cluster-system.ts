import type { Limits } from '@leasehold/core'
import { Cluster, type DiskFaults, type MemberSettings, QUIET_DISK, SimulatedClient } from '../../cluster/index.js'
import { StreamConnector, type World } from '../../world/index.js'
import type { LockSystem } from '../system.js'
import { clusterActions } from './cluster/cluster-faults.js'
import { ClusterClient } from './cluster/scenario-client.js'
import { type Drop, DroppingConnector } from './cluster/message-loss.js'
import { ClusterFacts } from './cluster/cluster-facts.js'

/** `{ "kind": "cluster", "members": 3, "ttl": 10, "margin": 1, … }`; durations in seconds. */
interface Spec {
  readonly members?: number
  readonly ttl?: number
  readonly margin?: number
  /** Options of a member, such as `snapshotBytes`. */
  readonly settings?: MemberSettings
  readonly limits?: Partial<Limits>
  readonly epoch?: number
  readonly disk?: Partial<DiskFaults>
  /** How fast the clocks of a machine run, in parts per million. */
  readonly drift?: Readonly<Record<string, number>>
  /** Clocks break the bound: nothing is promised about times, and only guards protect. */
  readonly clocksOutOfBound?: boolean
  /** Whether members check that their folder is still there: for scenarios that remove one. */
  readonly watchFolders?: boolean
  /** Messages of a client that get lost. */
  readonly drops?: Readonly<Record<string, readonly Drop[]>>
  /** Members that a client knows of at first; default: all. */
  readonly urls?: Readonly<Record<string, readonly string[]>>
  /** A second service beside the first, of members `M1`…, with clients of its own: the one that takes over from it. */
  readonly successor?: { readonly epoch: number; readonly clients: readonly string[] }
}

/** The member that a scenario calls `leader`, `follower1`, …, or by its name. */
function memberNamed({ leader, list }: Cluster, name: string): string {
  if (name === 'leader') return leader?.name ?? 'N1'
  const follower = /^follower(\d)$/.exec(name)
  return follower ? (list.filter((member) => !member.leads)[Number(follower[1]) - 1]?.name ?? 'N1') : name
}

function isReady({ leader, list }: Cluster): boolean {
  return leader !== undefined && list.every((member) => member.applied > 0)
}

/** The production cluster with all its faults, and facts from its log. */
export function cluster(world: World, spec: Spec): LockSystem {
  const { ttl = 10, margin = 1, drift = {}, drops = {}, urls = {} } = spec
  const names = Array.from({ length: spec.members ?? 3 }, (_, i) => `N${i + 1}`)
  const facts = new ClusterFacts(world)
  const one = clusterOfSpec(world, spec, names, facts)
  one.start()
  const second = spec.successor && successor(one, names.length, spec.successor.epoch)
  const clusterOf = (client: string): Cluster => (spec.successor?.clients.includes(client) && second ? second : one)
  const clients = new Map<string, ClusterClient>()
  const batons = new Map<string, string>()
  let startUs = 0
  const resolve = (who: string): string => memberNamed(one, who)
  return {
    // Some are added on the way.
    get members() {
      return [...one.list, ...(second?.list ?? [])].map(({ name }) => name)
    },
    overlapViolates: false,
    cluster: one,
    ready: () => isReady(one) && (second === undefined || isReady(second)),
    client: (process) => {
      startUs ||= world.nowUs
      const { name, machine } = process
      machine.drift(drift[name] ?? 0)
      const lost = drops[name]
      const own = clusterOf(name)
      const client = new SimulatedClient({
        name,
        machine,
        process,
        urls: urls[name]?.map((member) => `http://${resolve(member)}`) ?? own.urls,
        beliefs: own.checks.beliefs,
        watches: own.checks.watches,
        locks: { ttl: ttl * 1000, margin: margin * 1000 },
        ...(lost ? { connector: (inner: StreamConnector) => new DroppingConnector(inner, lost) } : {}),
      })
      const acting = new ClusterClient(client, () => startUs, batons)
      clients.set(name, acting)
      return acting
    },
    resolve,
    start: (name) => (second?.members.has(name) ? second : one).member(name).start(),
    member: (name) => (second?.members.has(name) ? second : one).members.get(name),
    actions: clusterActions(world, one, resolve),
    facts: (begin) => {
      one.checks.watches.finish()
      const told = [...clients].map(([name, client]) => [name, client.facts] as const)
      return { facts: Object.fromEntries(told), answers: one.answers, ...facts.of(one, begin) }
    },
    violations: () =>
      [one, ...(second ? [second] : [])]
        .flatMap(({ checks }) => checks.violations.found)
        .map(({ invariant, text, atMs }) => ({
          rule: 'invariant' as const,
          text: `${invariant}: ${text}`,
          atUs: Math.round(atMs * 1000),
        })),
  }
}

function clusterOfSpec(world: World, spec: Spec, names: readonly string[], facts: ClusterFacts): Cluster {
  const { drift = {} } = spec
  const one = new Cluster(world, {
    names,
    ...(spec.settings ? { settings: spec.settings } : {}),
    ...(spec.limits ? { limits: spec.limits } : {}),
    ...(spec.epoch ? { epoch: spec.epoch } : {}),
    ...(spec.watchFolders ? { watchFolders: true } : {}),
    machines: (name) => ({ driftPpm: drift[name] ?? 0 }),
    onEntry: (canonical) => facts.entry(canonical),
    log: (line) => facts.line(line),
  })
  for (const member of one.list) member.disk.faults = { ...QUIET_DISK, ...spec.disk }
  if (spec.clocksOutOfBound) {
    one.checks.sessions.clockBound = undefined
    one.checks.beliefs.enabled = false
  }
  return one
}

function successor({ checks, world }: Cluster, members: number, epoch: number): Cluster {
  const names = Array.from({ length: members }, (_, i) => `M${i + 1}`)
  const { pairs } = checks.grants
  const second = new Cluster(world, { names, epoch, pairs, identity: 'successor' })
  for (const member of second.list) member.disk.faults = QUIET_DISK
  second.start()
  return second
}
