import { mkdirSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Engine, ProtocolEngine } from '@leasehold/client'
import { InvalidError, type LockState, nameProblem, StorageError } from '@leasehold/core'
import { lockViews, type Member, noopNetwork, noopLogger, Replica, StreamHub } from '@leasehold/replica'
import { NodeClock, NodeRandom, openNodeReplica } from '@leasehold/replica/node'
import { LocalConnector } from './connector.js'
import { MemoryDisk } from './memory-disk.js'

/** A member of this process and the number of its clients. The last one to leave stops it. */
interface SharedMember {
  readonly hub: Promise<StreamHub<LockState>>
  users: number
}

const MEMORY_SEGMENT_BYTES = 256 * 1024
const MEMORY_SNAPSHOT_BYTES = 1024 * 1024

/** By URL: `memory:NAME`, or `file:` and the folder's real path. One member per process and name, however many clients. */
const members = new Map<string, SharedMember>()
/** Members that are stopping: their folder is free only afterwards. */
const stopping = new Map<string, Promise<void>>()

/**
 * An engine whose member runs in this process: `memory:NAME` without a disk (gone when its last client is closed),
 * `file:DIR` with a data folder of its own. Sessions end with this process, at the latest when it starts again.
 *
 * @throws InvalidError for another URL; StorageError when the folder belongs to another process or is damaged
 * @example
 * const locks = createLocksOn(await embeddedEngine('file:./data'))
 */
export async function embeddedEngine(url: string): Promise<Engine> {
  const { key, open } = placeOf(url)
  const hub = await enter(key, open)
  return new ProtocolEngine({
    name: url,
    urls: [key],
    connector: new LocalConnector(hub),
    onClose: () => leave(key),
  })
}

function placeOf(url: string): { key: string; open: () => Promise<Member<LockState>> } {
  if (url.startsWith('memory:')) {
    const name = url.slice('memory:'.length)
    const problem = nameProblem(name)
    if (problem !== undefined)
      throw new InvalidError(`${problem}: ${JSON.stringify(url.slice(0, 80))}`, { hint: "'memory:NAME'" })
    return { key: url, open: () => openMemory(name) }
  }
  if (url.startsWith('file:')) {
    const dir = folderOf(url)
    return { key: `file:${realPath(dir)}`, open: () => openNodeReplica({ dir }) }
  }
  throw new InvalidError(`not an embedded engine: ${JSON.stringify(url.slice(0, 80))}`, {
    hint: "'file:./data' or 'memory:NAME'",
  })
}

/** `file:./data`, `file:/var/lib/locks`, `file:///var/lib/locks`. */
function folderOf(url: string): string {
  const path = url.slice('file:'.length)
  if (path === '') throw new InvalidError('which folder?', { hint: "'file:./data'" })
  if (!path.startsWith('//')) return resolve(path)
  try {
    return fileURLToPath(url)
  } catch (error) {
    throw new InvalidError(`not a folder: ${JSON.stringify(url.slice(0, 80))}`, { cause: error, hint: "'file:./data'" })
  }
}

/** The real path of a folder, so that different spellings name the same one. */
function realPath(dir: string): string {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    return realpathSync(dir)
  } catch (error) {
    throw new StorageError(`the data folder ${dir} cannot be created`, { cause: error })
  }
}

async function enter(key: string, open: () => Promise<Member<LockState>>): Promise<StreamHub<LockState>> {
  for (let left = stopping.get(key); left; left = stopping.get(key)) await left
  let shared = members.get(key)
  if (!shared) {
    shared = { users: 0, hub: open().then((member) => new StreamHub({ member, views: lockViews, local: true })) }
    members.set(key, shared)
  }
  shared.users++
  try {
    return await shared.hub
  } catch (error) {
    if (members.get(key) === shared) members.delete(key)
    throw error instanceof Error ? error : new StorageError(String(error))
  }
}

async function leave(key: string): Promise<void> {
  const shared = members.get(key)
  if (!shared || --shared.users > 0) return
  members.delete(key)
  const stopped = stop(await shared.hub)
  stopping.set(key, stopped)
  await stopped
  stopping.delete(key)
}

async function stop(hub: StreamHub<LockState>): Promise<void> {
  hub.stop()
  await new Promise<void>((done) => hub.member.stop(done))
}

function openMemory(name: string): Promise<Replica> {
  return new Promise((resolve, reject) => {
    const platform = {
      disk: new MemoryDisk(name),
      clock: new NodeClock(),
      random: new NodeRandom(),
      network: noopNetwork,
      log: noopLogger,
    }
    const options = {
      platform,
      name: 'memory',
      bootstrap: {},
      segmentBytes: MEMORY_SEGMENT_BYTES,
      snapshotBytes: MEMORY_SNAPSHOT_BYTES,
      spareSegments: 1,
      reserveBytes: 0,
    }
    Replica.open(options, (error, replica) => (replica ? resolve(replica) : reject(error)))
  })
}
