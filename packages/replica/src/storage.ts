import { StorageError } from '@leasehold/core'
import type { Index, Term } from '@leasehold/raft'
import { type Identity, identitySeed, readIdentity, writeIdentity } from './identity.js'
import { Log } from './log/log.js'
import type { Disk } from './platform.js'
import { type Snapshot, Snapshots } from './snapshots/snapshots.js'
import { writeFailed } from './storage-errors.js'

export interface StorageOptions {
  readonly segmentBytes: number
  /** Ready log files beside the one in use. */
  readonly spares: number
  /** Least size of the reserve for the next snapshot. */
  readonly reserveBytes: number
  /** Something about the room on the disk has changed, or it has failed. */
  readonly changed: () => void
}

const DATA = /^(log|snapshot)-/

/** Everything that a member keeps in its data folder: who it is, its snapshots and its log. */
export interface Storage {
  readonly identity: Identity
  readonly snapshot: Snapshot
  readonly snapshots: Snapshots
  readonly log: Log
}

/** Whether a data folder belongs to a member already. Data without an identity is damage, not an empty folder. */
export function isFounded(disk: Disk): boolean {
  if (readIdentity(disk)) return true
  const data = disk.list().filter((name) => DATA.test(name) && !/^snapshot-0{16}-/.test(name))
  if (data.length === 0) return false
  throw new StorageError(`${disk.path} has ${data[0]}, but no identity file`, {
    hint: 'the folder is incomplete: bring the missing files back, or start with an empty folder',
  })
}

/**
 * Makes an empty folder a member's: the founding snapshot first, the identity last, so that an interrupted founding
 * starts over.
 */
export function found(
  disk: Disk,
  identity: Identity,
  snapshot: Snapshot,
  done: (error: Error | undefined) => void,
): void {
  for (const name of disk.list()) if (DATA.test(name)) disk.remove(name)
  const snapshots = new Snapshots(disk, { reserveBytes: 0, changed() {} })
  snapshots.save(
    snapshot,
    (error) => {
      if (error) return done(error)
      writeIdentity(disk, identity, (failed) => done(failed && writeFailed(`${disk.path}/identity`, failed)))
    },
    { reserve: false },
  )
}

/** Reads a member's folder. `done` may run inside the call. */
export function openStorage(
  disk: Disk,
  options: StorageOptions,
  done: (error: Error | undefined, storage?: Storage) => void,
): void {
  let identity: Identity | undefined
  let snapshots: Snapshots
  try {
    identity = readIdentity(disk)
    snapshots = new Snapshots(disk, { reserveBytes: options.reserveBytes, changed: options.changed })
  } catch (error) {
    return done(error as Error)
  }
  const snapshot = snapshots.loaded
  if (!identity || !snapshot) return done(new StorageError(`${disk.path} has no ${identity ? 'snapshot' : 'identity'}`))
  const { index, term }: { index: Index; term: Term } = snapshot
  const logOptions = {
    identity: identitySeed(identity),
    segmentBytes: options.segmentBytes,
    spares: options.spares,
    snapshot: { index, term },
    changed: options.changed,
  }
  Log.open(disk, logOptions, (error, log) => {
    if (error && snapshots.passedOver) {
      const text = `${error.message}; a newer snapshot was passed over: ${snapshots.passedOver.message}`
      return done(new StorageError(text, { cause: error, hint: snapshots.passedOver.hint }))
    }
    if (!log || !identity) return done(error)
    snapshots.prepare()
    done(undefined, { identity, snapshot, snapshots, log })
  })
}
