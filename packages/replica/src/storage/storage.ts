import { StorageError } from '@leasehold/core'
import type { Index, Term } from '@leasehold/raft'
import { IDENTITY_FILE, type Identity, identitySeed, readIdentity, writeIdentity } from './identity.js'
import { Log } from '../log/log.js'
import { decodeMeta } from '../cluster-meta.js'
import type { Disk } from '../platform.js'
import { type Snapshot, SnapshotStore } from '../snapshots/snapshot-store.js'
import { ContradictionError, DamagedError, writeFailed } from './storage-errors.js'

export interface StorageOptions {
  readonly segmentBytes: number
  /** Ready log files beside the one in use. */
  readonly spareSegments: number
  /** Least size of the reserve for the next snapshot. */
  readonly reserveBytes: number
  /** Something about the room on the disk has changed, or it has failed. */
  readonly changed: () => void
}

const DATA = /^(log|snapshot)-/
/** Lies in a folder while a backup is restored into it: what is there is not whole yet. */
export const RESTORING = 'restoring'
/** Lies in a folder while a single member is made of it: what is there may be of both lives. */
export const RECOVERING = 'recovering'

/** Lies in a folder whose history is not that of its cluster, and says why. */
export const CONTRADICTED = 'contradicted'

/** Everything that a member keeps in its data folder: who it is, its snapshots and its log. */
export interface Storage {
  readonly identity: Identity
  readonly snapshot: Snapshot
  readonly snapshots: SnapshotStore
  readonly log: Log
}

/**
 * Whether a data folder belongs to a member already. Data without an identity is damage, not an empty folder.
 * @throws StorageError on damage, and when a restore or recover of the folder was interrupted
 */
export function isInitialized(disk: Disk): boolean {
  const names = disk.list()
  if (names.includes(RECOVERING)) {
    throw new StorageError(`a recover of ${disk.path} was interrupted`, {
      hint: 'run leasehold recover --force-single again with the same --epoch: it goes on where it was',
    })
  }
  if (readIdentity(disk)) return true
  if (names.includes(RESTORING)) {
    throw new StorageError(`a restore into ${disk.path} was interrupted`, {
      hint: 'run leasehold restore again with the next --epoch: it starts over',
    })
  }
  const data = names.filter((name) => DATA.test(name) && !/^snapshot-0{16}-/.test(name))
  if (data.length === 0) return false
  throw new DamagedError(`${disk.path} has ${data[0]}, but no identity file`, {
    hint: 'the folder is incomplete: bring the missing files back, or start with an empty folder',
  })
}

/**
 * Makes an empty folder a member's: the founding snapshot first, the identity last, so that an interrupted founding
 * starts over.
 */
export function initializeFolder(
  disk: Disk,
  identity: Identity,
  snapshot: Snapshot,
  done: (error: Error | undefined) => void,
): void {
  for (const name of disk.list()) if (DATA.test(name)) disk.remove(name)
  const snapshots = new SnapshotStore(disk, { reserveBytes: 0, changed() {} })
  snapshots.save(
    snapshot,
    (error) => {
      if (error) return done(error)
      writeIdentity(disk, identity, (failed) => done(failed && writeFailed(`${disk.path}/identity`, failed)))
    },
    { reserve: false },
  )
}

/**
 * Reads a member's folder. `done` may run inside the call.
 *
 * Nothing that is read here counts before it is durable: an earlier process may have been killed between a change and its
 * sync, and what can be read may still be lost with the power. So all names are synced first, before anything is removed:
 * the rename of the identity, of a snapshot or of a log file may be unsynced. The content of identity and snapshots was
 * synced before they got their names; it is synced again in case another program has just copied the folder here. The log,
 * in which term and vote stand, is the one file that grows under its own name: see `log/durable.ts`.
 */
export function openStorage(
  disk: Disk,
  options: StorageOptions,
  done: (error: Error | undefined, storage?: Storage) => void,
): void {
  let identity: Identity | undefined
  let snapshots: SnapshotStore
  try {
    syncEverything(disk)
    refuseContradicted(disk)
    identity = readIdentity(disk)
    snapshots = new SnapshotStore(disk, { reserveBytes: options.reserveBytes, changed: options.changed })
  } catch (error) {
    return done(error as Error)
  }
  const snapshot = snapshots.loaded
  if (!identity || !snapshot) return done(new DamagedError(`${disk.path} has no ${identity ? 'snapshot' : 'identity'}`))
  const foreign = foreignSnapshot(disk, identity, snapshot)
  if (foreign) return done(foreign)
  const { index, term }: { index: Index; term: Term } = snapshot
  const logOptions = {
    identity: identitySeed(identity),
    segmentBytes: options.segmentBytes,
    spareSegments: options.spareSegments,
    snapshot: { index, term },
    changed: options.changed,
  }
  Log.open(disk, logOptions, (error, log) => {
    if (error && snapshots.skipped) {
      const text = `${error.message}; a newer snapshot was passed over: ${snapshots.skipped.message}`
      return done(new DamagedError(text, { cause: error, hint: snapshots.skipped.hint }))
    }
    if (!log || !identity) return done(error)
    snapshots.prepare()
    done(undefined, { identity, snapshot, snapshots, log })
  })
}

/** Makes everything durable that a member's folder says: its names, then the files. @throws StorageError */
function syncEverything(disk: Disk): void {
  let at = disk.path
  try {
    disk.syncFolder()
    for (const name of disk.list()) {
      if (name !== IDENTITY_FILE && !DATA.test(name)) continue
      at = `${disk.path}/${name}`
      const file = disk.open(name)
      try {
        file.writeSync(0, [])
      } finally {
        file.close()
      }
    }
  } catch (error) {
    throw writeFailed(at, error)
  }
}

/** Keeps a member from ever starting on this folder again. `done` runs when that is written down, or cannot be. */
export function markContradicted(disk: Disk, why: string, done: () => void): void {
  const bytes = new TextEncoder().encode(why)
  disk.create(CONTRADICTED, bytes.length, (_error, file) => {
    if (!file) return done()
    file.write(0, [bytes], true, () => {
      file.close()
      done()
    })
  })
}

/** @throws ContradictionError */
function refuseContradicted(disk: Disk): void {
  if (!disk.list().includes(CONTRADICTED)) return
  const why = new TextDecoder().decode(disk.read(CONTRADICTED)).replaceAll('\0', '')
  throw new ContradictionError(`${disk.path} contradicts its cluster: ${why || 'the file says no more'}`)
}

/** Why a snapshot cannot be this member's: files of two folders were mixed. */
export function foreignSnapshot(disk: Disk, identity: Identity, snapshot: Snapshot): StorageError | undefined {
  const { cluster } = decodeMeta(snapshot.meta)
  if (cluster === identity.cluster) return undefined
  return new DamagedError(
    `${disk.path} has a snapshot of cluster ${cluster}, and its identity is of cluster ${identity.cluster}`,
    { hint: 'files of two data folders were mixed: bring the files of one of them back' },
  )
}
