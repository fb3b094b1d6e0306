import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes, randomInt } from 'node:crypto'
import { InvalidError, LEVEL_FLOOR, LEVEL_MAX } from '@leasehold/core'
import {
  bootstrapFloor,
  type BootstrapCluster,
  type Logger,
  type MemberInfo,
  mintCluster,
  mintNode,
} from '@leasehold/replica'
import {
  DamagedError,
  folderIdentity,
  makeFolder,
  moveToQuarantine,
  wasAlwaysAlone,
  writeWhole,
} from '@leasehold/replica/node'
import { requestRejoin, decodeRejoinRequest, RejoinHandler, type RejoinTarget } from './rejoin.js'
import {
  encodeBootstrapStatus,
  type BootstrapRecord,
  type BootstrapStatus,
  fetchBootstrapStatus,
} from './bootstrap-status.js'
import type { TcpTransport } from './transport.js'

/*
 * How an empty member becomes one of a cluster (the muster). Every listed member that is empty answers with its name, its
 * node number (minted once, kept in its folder) and its list. When all have answered with the same list, the one with
 * the lowest name mints the cluster's id and begins; the others learn of it by asking. A member that is empty and finds a
 * cluster which does not name its node number waits until an operator adds it: a wiped disk is a new member.
 */

const FILE = 'muster.json'
const ASK_EVERY_MS = 300
const SAY_EVERY_MS = 10_000

export interface BootstrapOptions {
  readonly dir: string
  readonly name: string
  /** Where it takes clients. */
  readonly url: string
  /** Name → HOST:PORT of all members, this one too. */
  readonly list: ReadonlyMap<string, string>
  /** First epoch of the cluster; default 1. */
  readonly epoch?: number
  /** The cluster's counter starts above it; default the floor of this machine's clock. */
  readonly floor?: number
  /** Whether this member, when it is empty, takes the place of the member of its name in a cluster that exists. */
  readonly repair?: boolean
  readonly peers: TcpTransport
  readonly log: Logger
  readonly signal: AbortSignal
}

interface Kept {
  readonly node: number
  readonly founding?: BootstrapRecord
  /** It has begun with this record: from then on the folder has an identity, or has lost everything. */
  readonly begun?: true
  /** It had data that was lost: it may get everything from a cluster, and never begin one. */
  readonly lost?: true
}

/** `n1=HOST:PORT,n2=…` → a map. @throws InvalidError */
export function parseClusterList(text: string): Map<string, string> {
  const list = new Map<string, string>()
  for (const part of text.split(',')) {
    const at = part.indexOf('=')
    const name = part.slice(0, at).trim()
    const address = part.slice(at + 1).trim()
    if (at < 1 || address === '')
      throw new InvalidError(`a cluster is listed as n1=HOST:PORT,n2=HOST:PORT, not ${JSON.stringify(part)}`)
    if (list.has(name)) throw new InvalidError(`the member ${name} is listed twice`)
    list.set(name, address)
  }
  return list
}

function canonical(list: ReadonlyMap<string, string>): string {
  return [...list]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, address]) => `${name}=${address}`)
    .join(',')
}

/** The record that a member of this folder was founded with; undefined for an empty one or a service of one. */
export function storedBootstrapRecord(dir: string): BootstrapRecord | undefined {
  return readKept(dir)?.founding
}

/** Resolves when this folder may begin as a member: at once if it has begun before. Rejects when `signal` aborts. */
export async function bootstrap(options: BootstrapOptions): Promise<BootstrapCluster & { readonly epoch: number }> {
  makeFolder(options.dir)
  if (!options.list.has(options.name)) {
    throw new InvalidError(`--cluster does not list ${options.name}`, {
      hint: 'every member is started with the same full list',
    })
  }
  let kept = keptOf(options)
  kept ??= { node: mintNode(RANDOM) }
  // Written again even when it was read: the process that wrote it may have been killed before it was durable, and others are told of it.
  writeKept(options.dir, kept)
  const { node, lost } = kept
  let mine: BootstrapRecord | undefined = kept.founding
  options.peers.onQuestion(async () => encodeBootstrapStatus(bootstrapStatusOf(options, kept, mine)))
  let said = 0
  while (mine === undefined) {
    const answers = await askAll(options)
    let found = decide(options, kept, answers)
    if ('record' in found) {
      mine = found.record
      writeKept(options.dir, { node, founding: mine, ...(lost && { lost }) })
      break
    }
    if (found.stranger === true && options.repair === true) {
      const { name, url, list } = options
      const self = { node, name, url, peer: list.get(name) as string }
      found = { waiting: await requestRejoin(options.peers.dialer, self, placesOf(list, answers)) }
    }
    if (performance.now() - said > SAY_EVERY_MS || said === 0) {
      said = performance.now()
      options.log.info(found.waiting, { member: options.name, node })
    }
    await pause(ASK_EVERY_MS, options.signal)
  }
  checkLevel(options, mine)
  const { id, founders, epoch, floor = 0, level = 1 } = mine
  return { id, node, founders, epoch, floor, level }
}

/** @throws InvalidError when a newer version founded the cluster at a level that this one does not know */
function checkLevel({ name }: BootstrapOptions, { level = 1 }: BootstrapRecord): void {
  if (level <= LEVEL_MAX) return
  throw new InvalidError(
    `the cluster of ${name} was founded at feature level ${level}, and this version knows up to ${LEVEL_MAX}`,
    {
      hint: 'start every member with the newest version that any of them runs',
    },
  )
}

/**
 * What is known about the member of a folder, which must be the one that is started. A service of one (such as a restored
 * one) becomes the only founder of its cluster: now it is told where it listens to others.
 */
function keptOf({ dir, name, url, list, log }: BootstrapOptions): Kept | undefined {
  const kept = readKept(dir)
  const identity = folderIdentity(dir)
  if (identity === undefined) return kept?.begun === true ? emptied(dir, log) : kept
  if (identity.name !== name) {
    throw new InvalidError(`${dir} belongs to the member ${identity.name}, and it is started as ${name}`, {
      hint: `use --name ${identity.name}, or another folder`,
    })
  }
  const { node, cluster, epoch } = identity
  if (kept?.lost === true && kept.founding === undefined) {
    throw new DamagedError(`${dir} was being given up as damaged, and not all of it was moved aside`, {
      hint: 'start it with --repair, which moves the rest; what is left must not be used without the rest',
    })
  }
  if (kept?.founding !== undefined) {
    if (kept.node === node && kept.founding.id === cluster) return kept
    throw new DamagedError(`${join(dir, FILE)} is of another member than the folder's identity`, {
      hint: 'files of two data folders were mixed: bring the files of one of them back',
    })
  }
  if (!wasAlwaysAlone(dir)) {
    throw new DamagedError(`${dir} belongs to a member of a cluster, but ${FILE} is missing`, {
      hint: 'bring it back, or remove this member and add it again with an empty folder',
    })
  }
  const alone: Kept = {
    node,
    begun: true,
    founding: { id: cluster, epoch, founders: [{ node, name, peer: list.get(name) as string, url }] },
  }
  writeKept(dir, alone)
  return alone
}

/**
 * Everything has gone from the folder of a member that had begun, but for this file: a wiped disk is a new member. Under its
 * old number it would vote again in terms in which it has voted.
 */
function emptied(dir: string, log: Logger): Kept {
  const kept: Kept = { node: mintNode(RANDOM), lost: true }
  writeKept(dir, kept)
  log.warn(`${dir} was emptied: what this member had is lost, and it is a new one now`, { node: kept.node })
  return kept
}

/**
 * For a start without a cluster: the folder of a member that has lost its data must not begin as a service of one, empty or
 * with what was left of it.
 * @throws InvalidError
 */
export function checkDataNotLost(dir: string): void {
  const kept = readKept(dir)
  const isLost =
    kept?.founding === undefined ? kept?.lost === true : kept.begun === true && folderIdentity(dir) === undefined
  if (!isLost) return
  throw new InvalidError(`${dir} is that of a member of a cluster that has lost its data`, {
    hint: 'start it as that member, with --cluster and --repair; or restore a backup into an empty folder',
  })
}

/** The member of this folder has an identity now: its founding is over. Durable when it returns. */
export function markBootstrapped(dir: string): void {
  const kept = readKept(dir)
  if (kept?.founding === undefined || kept.begun === true) return
  writeKept(dir, { ...kept, begun: true })
}

/** Goes on answering those that begin, once this member runs. */
export function servePeerRequests(
  peers: TcpTransport,
  options: Pick<BootstrapOptions, 'name' | 'url'> & {
    node: number
    founding: BootstrapRecord
    list: ReadonlyMap<string, string>
  },
  member: RejoinTarget,
): void {
  const { name, url, node, founding, list } = options
  const rejoin = new RejoinHandler(member, peers.dialer)
  peers.onQuestion(async (question) => {
    const repair = decodeRejoinRequest(question)
    if (repair !== undefined) return await rejoin.answer(repair)
    const members = member.members.map((one) => one.node)
    const { instance } = peers
    return encodeBootstrapStatus({
      name,
      node,
      url,
      list: canonical(list),
      epoch: founding.epoch,
      instance,
      founding,
      members,
    })
  })
}

/**
 * A damaged folder becomes an empty one of a member that lost its data; the files are moved aside, for people.
 * @returns where they are now
 */
export async function quarantineFolder(dir: string): Promise<string> {
  const kept: Kept = { node: mintNode(RANDOM), lost: true }
  return await moveToQuarantine(dir, { name: FILE, text: `${JSON.stringify(kept)}\n` }, new Date())
}

/** Where members of a cluster that exists listen. */
function placesOf(list: ReadonlyMap<string, string>, answers: ReadonlyMap<string, BootstrapStatus>): string[] {
  return [...answers].filter(([, { founding }]) => founding !== undefined).map(([name]) => list.get(name) as string)
}

function bootstrapStatusOf(
  options: BootstrapOptions,
  { node, lost }: Kept,
  founding: BootstrapRecord | undefined,
): BootstrapStatus {
  const { name, url, list, epoch = 1, peers } = options
  const { instance } = peers
  const level = LEVEL_MAX
  const standing = { name, node, url, list: canonical(list), epoch, level, instance, ...(lost && { lost }) }
  return founding === undefined
    ? standing
    : { ...standing, founding, members: founding.founders.map((one) => one.node) }
}

async function askAll({ list, name, peers }: BootstrapOptions): Promise<Map<string, BootstrapStatus>> {
  const answers = new Map<string, BootstrapStatus>()
  const others = [...list].filter(([other]) => other !== name)
  await Promise.all(
    others.map(async ([other, address]) => {
      try {
        answers.set(other, await fetchBootstrapStatus(peers.dialer, address))
      } catch {
        // Away: it is asked again.
      }
    }),
  )
  return answers
}

function decide(
  options: BootstrapOptions,
  { node, lost }: Kept,
  answers: ReadonlyMap<string, BootstrapStatus>,
): { record: BootstrapRecord } | { waiting: string; stranger?: boolean } {
  const { name, list, epoch = 1 } = options
  for (const [other, answer] of answers) {
    if (answer.name !== other)
      return { waiting: `the member at ${list.get(other)} is ${answer.name}, not ${other}: check --cluster` }
  }
  const begun = [...answers.values()].find((answer) => answer.founding !== undefined)
  if (begun !== undefined) {
    const member = [...answers.values()].find(
      (answer) => answer.founding !== undefined && answer.members?.includes(node),
    )
    if (member?.founding !== undefined) return { record: member.founding }
    return {
      waiting: `the cluster exists and does not know this member: leasehold cluster add ${name}=${list.get(name)}`,
      stranger: true,
    }
  }
  const loser = lost ? name : [...answers].find(([, answer]) => answer.lost)?.[0]
  if (loser !== undefined) {
    const waiting = `${loser} has lost its data and gets it from the others: waiting for a member that has its own`
    return { waiting: `${waiting}. If no member has, restore a backup` }
  }
  const missing = [...list.keys()].filter((other) => other !== name && !answers.has(other))
  if (missing.length > 0) return { waiting: `waiting for ${missing.join(', ')} to begin the cluster` }
  const odd = [...answers.values()].find((answer) => answer.list !== canonical(list) || answer.epoch !== epoch)
  if (odd !== undefined)
    return { waiting: `${odd.name} was started with another --cluster or --epoch: ${odd.list}, epoch ${odd.epoch}` }
  const lowest = [...list.keys()].sort()[0]
  if (lowest !== name) return { waiting: `waiting for ${lowest} to begin the cluster` }
  const founders: MemberInfo[] = [...list].map(([member, peer]) => {
    const answer = answers.get(member)
    return { node: answer?.node ?? node, name: member, peer, url: answer?.url ?? options.url }
  })
  // Older versions know no floor: they would found another state from the same record.
  const level = Math.min(LEVEL_MAX, ...[...answers.values()].map((answer) => answer.level ?? 1))
  const floor = level < LEVEL_FLOOR ? 0 : (options.floor ?? bootstrapFloor(Date.now(), options.epoch))
  return { record: { id: mintCluster(RANDOM), epoch, founders, floor, level } }
}

const RANDOM = {
  bytes: (length: number) => new Uint8Array(randomBytes(length)),
  below: (limit: number) => randomInt(limit),
}

function readKept(dir: string): Kept | undefined {
  const file = join(dir, FILE)
  if (!existsSync(file)) return undefined
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Kept
    if (!Number.isSafeInteger(kept.node) || kept.node < 1) throw new Error('no node number')
    return kept
  } catch (cause) {
    throw new DamagedError(`${file} is damaged`, {
      cause,
      hint: 'if this member never ran, delete it; otherwise bring it back from its backup',
    })
  }
}

/** Durable when it returns. */
function writeKept(dir: string, kept: Kept): void {
  writeWhole(join(dir, FILE), [new TextEncoder().encode(`${JSON.stringify(kept)}\n`)])
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(new InvalidError('stopped before the cluster began'))
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
