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
  /** Preallocated log files in reserve. */
  readonly spareSegments: number
  /** Least size of the reserve for the next snapshot. */
  readonly reserveBytes: number
  /** Runs when the room on the disk has changed or the disk has failed. */
  readonly changed: () => void
}

const DATA = /^(log|snapshot)-/
/** Marker file of a folder into which a backup is being restored: its content is incomplete. */
export const RESTORING = 'restoring'
/** Marker file of a folder that is being recovered: it may have files from before and after. */
export const RECOVERING = 'recovering'

/** Marker file of a folder whose history contradicts its cluster. Its content is the reason. */
export const CONTRADICTED = 'contradicted'

/** Everything that a member keeps in its data folder: its identity, snapshots and log. */
export interface Storage {
  readonly identity: Identity
  readonly snapshot: Snapshot
  readonly snapshots: SnapshotStore
  readonly log: Log
}

/**
 * Whether a data folder already belongs to a member. Data without an identity is damage, not an empty folder.
 * @throws StorageError on damage, and when a restore or recover of the folder was interrupted
 */
export function isInitialized(disk: Disk): boolean {
  const names = disk.list()
  if (names.includes(RECOVERING)) {
    throw new StorageError(`a recover of ${disk.path} was interrupted`, {
      hint: 'run leasehold recover --force-single again with the same --epoch: it continues where it stopped',
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
 * Initializes an empty folder: first the initial snapshot, last the identity, so that an interrupted initialization starts
 * over.
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
 * Everything is made durable before it counts: an earlier process may have been killed between a change and its sync, so
 * readable data may still be lost in a power failure. All names are synced first, before anything is removed, because the
 * rename of the identity, a snapshot or a log file may be unsynced. Identity and snapshots were synced before their rename;
 * they are synced again in case another program has just copied the folder. The log, which holds term and vote, is the only
 * file that grows under its final name: see `log/durable.ts`.
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
      const text = `${error.message}; a newer snapshot was skipped: ${snapshots.skipped.message}`
      return done(new DamagedError(text, { cause: error, hint: snapshots.skipped.hint }))
    }
    if (!log || !identity) return done(error)
    snapshots.prepare()
    done(undefined, { identity, snapshot, snapshots, log })
  })
}

/** Makes a member's folder durable: first the names, then the files. @throws StorageError */
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

/** Marks the folder so that no member starts on it again. `done` runs after the attempt, successful or not. */
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
  throw new ContradictionError(`${disk.path} contradicts its cluster: ${why || 'no reason is recorded'}`)
}

/** Returns the error if a snapshot belongs to another cluster: files of two folders were mixed. */
export function foreignSnapshot(disk: Disk, identity: Identity, snapshot: Snapshot): StorageError | undefined {
  const { cluster } = decodeMeta(snapshot.meta)
  if (cluster === identity.cluster) return undefined
  return new DamagedError(
    `${disk.path} has a snapshot of cluster ${cluster}, and its identity is of cluster ${identity.cluster}`,
    { hint: 'files of two data folders were mixed: bring the files of one of them back' },
  )
}
