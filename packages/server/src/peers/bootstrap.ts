import { InvalidError, LEVEL_FLOOR, LEVEL_MAX } from '@leasehold/core'
import {
  bootstrapFloor,
  type BootstrapCluster,
  type Logger,
  type MemberInfo,
  mintCluster,
  mintNode,
} from '@leasehold/replica'
import { makeFolder } from '@leasehold/replica/node'
import {
  type BootstrapRecord,
  type BootstrapStatus,
  encodeBootstrapStatus,
  fetchBootstrapStatus,
} from './bootstrap-status.js'
import { loadStored, type StoredBootstrap, writeStored } from './bootstrap-store.js'
import { canonicalList, type ClusterList } from './cluster-list.js'
import { RANDOM } from './random.js'
import { requestRejoin } from './rejoin.js'
import type { TcpTransport } from './transport.js'

/*
 * Cluster bootstrap: how an empty member becomes one of a cluster. Every listed member that is empty reports its name, its
 * node number (generated once, and stored in its folder) and its list. When all have reported the same list, the one with
 * the lowest name generates the id of the cluster and starts; the others ask it for the record. An empty member that finds
 * a cluster without its node number waits until an operator adds it: a wiped disk is a new member.
 */

const POLL_INTERVAL_MS = 300
const LOG_INTERVAL_MS = 10_000

export interface BootstrapOptions {
  readonly dir: string
  readonly name: string
  /** The URL for clients. */
  readonly url: string
  /** Name → HOST:PORT of all members, including this one. */
  readonly list: ClusterList
  /** First epoch of the cluster; default 1. */
  readonly epoch?: number
  /** The counter of the cluster starts above it; default: the floor of the clock of this machine. */
  readonly floor?: number
  /** Whether this member, when it is empty, replaces the member of its name in an existing cluster. */
  readonly repair?: boolean
  readonly peers: TcpTransport
  readonly log: Logger
  readonly signal: AbortSignal
}

/** The next step: start with a record, or keep waiting. `unknown`: a cluster exists that does not list this member. */
type Decision = { readonly record: BootstrapRecord } | { readonly waiting: string; readonly unknown?: boolean }

/**
 * Resolves when this folder may start as a member: immediately if it has started before.
 * @throws InvalidError for a wrong list, or when `signal` aborts; DamagedError
 */
export async function bootstrap(options: BootstrapOptions): Promise<BootstrapCluster & { readonly epoch: number }> {
  makeFolder(options.dir)
  if (!options.list.has(options.name)) {
    throw new InvalidError(`--cluster does not list ${options.name}`, {
      hint: 'start every member with the same full list',
    })
  }
  const stored = loadStored(options) ?? { node: mintNode(RANDOM) }
  // Written again even if it was read: an earlier process may have been killed before it was durable, and others see it.
  writeStored(options.dir, stored)
  let record = stored.founding
  options.peers.onRequest(async () => encodeBootstrapStatus(bootstrapStatusOf(options, stored, record)))
  record ??= await waitForRecord(options, stored)
  checkLevel(options, record)
  const { id, founders, epoch, floor = 0, level = 1 } = record
  return { id, node: stored.node, founders, epoch, floor, level }
}

/** Polls the other members until a record is decided, and stores it. */
async function waitForRecord(options: BootstrapOptions, stored: StoredBootstrap): Promise<BootstrapRecord> {
  const { node, lost } = stored
  let loggedAt = 0
  for (;;) {
    const statuses = await fetchAll(options)
    let decision = decide(options, stored, statuses)
    if ('record' in decision) {
      writeStored(options.dir, { node, founding: decision.record, ...(lost && { lost }) })
      return decision.record
    }
    if (decision.unknown === true && options.repair === true) {
      const { name, url, list } = options
      const self = { node, name, url, peer: list.get(name) as string }
      decision = { waiting: await requestRejoin(options.peers.dialer, self, clusterAddresses(list, statuses)) }
    }
    if (performance.now() - loggedAt > LOG_INTERVAL_MS || loggedAt === 0) {
      loggedAt = performance.now()
      options.log.info(decision.waiting, { member: options.name, node })
    }
    await pause(POLL_INTERVAL_MS, options.signal)
  }
}

/** @throws InvalidError when a newer version bootstrapped the cluster at a level that this version does not know */
function checkLevel({ name }: BootstrapOptions, { level = 1 }: BootstrapRecord): void {
  if (level <= LEVEL_MAX) return
  throw new InvalidError(
    `the cluster of ${name} was founded at feature level ${level}, but this version knows only levels up to ${LEVEL_MAX}`,
    {
      hint: 'start every member with the newest version that any of them runs',
    },
  )
}

/** The peer addresses of the members of an existing cluster. */
function clusterAddresses(list: ClusterList, statuses: ReadonlyMap<string, BootstrapStatus>): string[] {
  return [...statuses].filter(([, { founding }]) => founding !== undefined).map(([name]) => list.get(name) as string)
}

function bootstrapStatusOf(
  options: BootstrapOptions,
  { node, lost }: StoredBootstrap,
  founding: BootstrapRecord | undefined,
): BootstrapStatus {
  const { name, url, list, epoch = 1, peers } = options
  const { instance } = peers
  const status = {
    name,
    node,
    url,
    list: canonicalList(list),
    epoch,
    level: LEVEL_MAX,
    instance,
    ...(lost && { lost }),
  }
  return founding === undefined ? status : { ...status, founding, members: founding.founders.map((one) => one.node) }
}

/** The statuses of all other members that answer. */
async function fetchAll({ list, name, peers }: BootstrapOptions): Promise<Map<string, BootstrapStatus>> {
  const statuses = new Map<string, BootstrapStatus>()
  const others = [...list].filter(([other]) => other !== name)
  await Promise.all(
    others.map(async ([other, address]) => {
      try {
        statuses.set(other, await fetchBootstrapStatus(peers.dialer, address))
      } catch {
        // Unreachable now: the next round asks it again.
      }
    }),
  )
  return statuses
}

function decide(
  options: BootstrapOptions,
  stored: StoredBootstrap,
  statuses: ReadonlyMap<string, BootstrapStatus>,
): Decision {
  const { name, list, epoch = 1 } = options
  for (const [other, status] of statuses) {
    if (status.name !== other)
      return { waiting: `the member at ${list.get(other)} is ${status.name}, not ${other}: check --cluster` }
  }
  const existing = joinExisting(options, stored.node, [...statuses.values()])
  if (existing !== undefined) return existing
  const loser = stored.lost ? name : [...statuses].find(([, status]) => status.lost)?.[0]
  if (loser !== undefined) {
    const waiting = `${loser} has lost its data: waiting for a member that still has the data of the cluster`
    return { waiting: `${waiting}. If no member has it, restore a backup` }
  }
  const missing = [...list.keys()].filter((other) => other !== name && !statuses.has(other))
  if (missing.length > 0) return { waiting: `waiting for ${missing.join(', ')} to bootstrap the cluster` }
  const odd = [...statuses.values()].find((status) => status.list !== canonicalList(list) || status.epoch !== epoch)
  if (odd !== undefined)
    return { waiting: `${odd.name} was started with another --cluster or --epoch: ${odd.list}, epoch ${odd.epoch}` }
  const lowest = [...list.keys()].sort()[0]
  if (lowest !== name) return { waiting: `waiting for ${lowest} to bootstrap the cluster` }
  return { record: createRecord(options, stored.node, statuses) }
}

/** The decision when any member is already one of a cluster; undefined otherwise. */
function joinExisting(
  { name, list }: BootstrapOptions,
  node: number,
  statuses: readonly BootstrapStatus[],
): Decision | undefined {
  const members = statuses.filter((status) => status.founding !== undefined)
  if (members.length === 0) return undefined
  const knowing = members.find((status) => status.members?.includes(node))
  if (knowing?.founding !== undefined) return { record: knowing.founding }
  return {
    waiting: `the cluster exists but does not list this member: leasehold cluster add ${name}=${list.get(name)}`,
    unknown: true,
  }
}

function createRecord(
  options: BootstrapOptions,
  node: number,
  statuses: ReadonlyMap<string, BootstrapStatus>,
): BootstrapRecord {
  const { list, epoch = 1 } = options
  const founders: MemberInfo[] = [...list].map(([member, peer]) => {
    const status = statuses.get(member)
    return { node: status?.node ?? node, name: member, peer, url: status?.url ?? options.url }
  })
  // Older versions know no floor: with one, they would derive another initial state from the same record.
  const level = Math.min(LEVEL_MAX, ...[...statuses.values()].map((status) => status.level ?? 1))
  const floor = level < LEVEL_FLOOR ? 0 : (options.floor ?? bootstrapFloor(Date.now(), options.epoch))
  return { id: mintCluster(RANDOM), epoch, founders, floor, level }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(new InvalidError('stopped before the cluster was bootstrapped'))
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
