import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidError } from '@leasehold/core'
import { type Logger, mintNode } from '@leasehold/replica'
import { DamagedError, folderIdentity, moveToQuarantine, wasAlwaysAlone, writeWhole } from '@leasehold/replica/node'
import type { BootstrapRecord } from './bootstrap-status.js'
import type { ClusterList } from './cluster-list.js'
import { RANDOM } from './random.js'

/** The file with the stored record; its name and fields are a format that older versions read. */
const FILE = 'muster.json'

/** What the data folder of a member records about its bootstrap. */
export interface StoredBootstrap {
  readonly node: number
  readonly founding?: BootstrapRecord
  /** The member has started with this record: from then on, a folder without an identity has lost its data. */
  readonly begun?: true
  /** The member lost its data: it may receive everything from a cluster, but must never bootstrap one. */
  readonly lost?: true
}

/** The member that is being started, and its data folder. */
export interface StartedMember {
  readonly dir: string
  readonly name: string
  readonly url: string
  readonly list: ClusterList
  readonly log: Logger
}

/** The record with which the cluster of this folder was bootstrapped; undefined for a new folder or a service of one. */
export function storedBootstrapRecord(dir: string): BootstrapRecord | undefined {
  return readStored(dir)?.founding
}

/**
 * Reads what the folder records about its member, which must be the started one. The folder of a service of one, such as a
 * restored backup, becomes that of the only founder of a cluster, with the address from `list`.
 * @throws InvalidError, DamagedError
 */
export function loadStored({ dir, name, url, list, log }: StartedMember): StoredBootstrap | undefined {
  const stored = readStored(dir)
  const identity = folderIdentity(dir)
  if (identity === undefined) return stored?.begun === true ? replaceEmptied(dir, log) : stored
  if (identity.name !== name) {
    throw new InvalidError(`${dir} belongs to the member ${identity.name}, but it is started as ${name}`, {
      hint: `use --name ${identity.name}, or another folder`,
    })
  }
  const { node, cluster, epoch } = identity
  if (stored?.lost === true && stored.founding === undefined) {
    throw new DamagedError(`${dir} is damaged, and only some of its files were moved to quarantine`, {
      hint: 'start it with --repair, which moves the remaining files; they must not be used without the others',
    })
  }
  if (stored?.founding !== undefined) {
    if (stored.node === node && stored.founding.id === cluster) return stored
    throw new DamagedError(`${join(dir, FILE)} and the identity of the folder belong to different members`, {
      hint: 'files of two data folders were mixed: restore the files of one of them',
    })
  }
  if (!wasAlwaysAlone(dir)) {
    throw new DamagedError(`${dir} belongs to a member of a cluster, but ${FILE} is missing`, {
      hint: 'restore it, or remove this member and add it again with an empty folder',
    })
  }
  const alone: StoredBootstrap = {
    node,
    begun: true,
    founding: { id: cluster, epoch, founders: [{ node, name, peer: list.get(name) as string, url }] },
  }
  writeStored(dir, alone)
  return alone
}

/**
 * Replaces the record of a member whose folder was emptied except for this file: it becomes a new member. With its old
 * node number, it could vote again in terms in which it has already voted.
 */
function replaceEmptied(dir: string, log: Logger): StoredBootstrap {
  const stored: StoredBootstrap = { node: mintNode(RANDOM), lost: true }
  writeStored(dir, stored)
  log.warn(`${dir} was emptied: the data of this member is lost, and it is a new member now`, { node: stored.node })
  return stored
}

/**
 * Checks, for a start without a cluster, that the folder is not that of a cluster member that lost its data: such a folder
 * must not become a service of one, whether it is empty or contains remaining files.
 * @throws InvalidError
 */
export function checkDataNotLost(dir: string): void {
  const stored = readStored(dir)
  const isLost =
    stored?.founding === undefined ? stored?.lost === true : stored.begun === true && folderIdentity(dir) === undefined
  if (!isLost) return
  throw new InvalidError(`${dir} belongs to a member of a cluster that has lost its data`, {
    hint: 'start it as that member, with --cluster and --repair; or restore a backup into an empty folder',
  })
}

/** Records that the member of this folder has an identity. Durable when it returns. */
export function markBootstrapped(dir: string): void {
  const stored = readStored(dir)
  if (stored?.founding === undefined || stored.begun === true) return
  writeStored(dir, { ...stored, begun: true })
}

/**
 * Moves the files of a damaged folder to quarantine, and makes it the folder of a new member that lost its data.
 * @returns the path of the quarantined files
 */
export async function quarantineFolder(dir: string): Promise<string> {
  const stored: StoredBootstrap = { node: mintNode(RANDOM), lost: true }
  return await moveToQuarantine(dir, { name: FILE, text: `${JSON.stringify(stored)}\n` }, new Date())
}

function readStored(dir: string): StoredBootstrap | undefined {
  const file = join(dir, FILE)
  if (!existsSync(file)) return undefined
  try {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as StoredBootstrap
    if (!Number.isSafeInteger(stored.node) || stored.node < 1) throw new Error('no node number')
    return stored
  } catch (cause) {
    throw new DamagedError(`${file} is damaged`, {
      cause,
      hint: 'if this member never ran, delete it; otherwise restore it from its backup',
    })
  }
}

/** Durable when it returns. */
export function writeStored(dir: string, stored: StoredBootstrap): void {
  writeWhole(join(dir, FILE), [new TextEncoder().encode(`${JSON.stringify(stored)}\n`)])
}
