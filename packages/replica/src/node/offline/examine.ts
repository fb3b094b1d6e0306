import { countsOf, LockState, StorageError } from '@leasehold/core'
import type { Entry } from '@leasehold/raft'
import { lockEntryOf } from '../../driver/applier.js'
import { type Identity, identitySeed, readIdentity } from '../../storage/identity.js'
import { readLog } from '../../log/reconcile.js'
import { type ClusterMeta, decodeMeta } from '../../cluster-meta.js'
import type { Disk } from '../../platform.js'
import { readSnapshot, type Snapshot, snapshotNames } from '../../snapshots/snapshot-store.js'
import { damaged } from '../../storage/storage-errors.js'
import { foreignSnapshot, isInitialized } from '../../storage/storage.js'
import { STEP_ENTRIES, type ReportProgress } from './progress.js'

/** The verified content of a member's folder. */
export interface FolderContent {
  readonly identity: Identity
  /** Members and configuration at the newest snapshot. */
  readonly meta: ClusterMeta
  readonly snapshots: readonly {
    readonly name: string
    readonly index: number
    readonly term: number
    readonly bytes: number
  }[]
  readonly log: {
    readonly files: number
    /** First and last entry in the files; undefined when there is none. */
    readonly first: number | undefined
    readonly last: number | undefined
    /** Whether the last write was interrupted before it was acknowledged. The next start clears it. */
    readonly torn: boolean
  }
  /** Entries up to here are known to be committed. Later ones may be. */
  readonly commit: number
  /** Index and term of the last entry. */
  readonly index: number
  readonly term: number
  /** The state after the last entry. */
  readonly state: LockState
  readonly counts: ReturnType<typeof countsOf>
}

/**
 * Reads everything in a member's folder without changes, and replays the log into the state. If the log reaches back to the
 * older snapshot, replaying it must produce the newer one.
 * @throws StorageError that names file and offset
 */
export function examineFolder(disk: Disk, steps: ReportProgress = () => {}): FolderContent {
  if (!isInitialized(disk)) {
    throw new StorageError(`${disk.path} is empty`, { hint: 'check the path: no service has ever run on this folder' })
  }
  const identity = readIdentity(disk) as Identity
  const names = snapshotNames(disk)
  const snapshots = names.map((name, i) => {
    steps('reading the snapshots', i, names.length)
    return readSnapshot(disk, name)
  })
  const newest = snapshots.at(-1)
  const newestName = names.at(-1)
  if (!newest || newestName === undefined) throw new StorageError(`${disk.path} has no snapshot`)
  const foreign = snapshots.map((one) => foreignSnapshot(disk, identity, one)).find((problem) => problem !== undefined)
  if (foreign) throw foreign
  steps('reading the log')
  const log = readLog(disk, identitySeed(identity), newest)
  const state = stateOf(disk, newestName, newest)
  const hash = state.hash()
  for (const [i, older] of snapshots.slice(0, -1).entries()) {
    const between = entriesBetween(log.recovered.entries, older, newest)
    if (between && replay(disk, stateOf(disk, names[i] as string, older), between, steps).hash() !== hash) {
      throw damaged(`${disk.path}/${newestName}`, 0, `its state is not what the log makes of ${names[i]}`)
    }
  }
  const last = log.entries.at(-1)
  replay(disk, state, log.entries, steps)
  return {
    identity,
    meta: decodeMeta(newest.meta),
    snapshots: snapshots.map(({ index, term }, i) => {
      const name = names[i] as string
      return { name, index, term, bytes: disk.size(name) }
    }),
    log: {
      files: log.recovered.segments.length,
      first: log.recovered.entries[0]?.index,
      last: log.recovered.entries.at(-1)?.index,
      torn: log.recovered.zeroTo !== undefined || log.recovered.fillFrom !== undefined,
    },
    commit: log.hardState.commit,
    index: last?.index ?? newest.index,
    term: last?.term ?? newest.term,
    state,
    counts: countsOf(state),
  }
}

function stateOf(disk: Disk, name: string, snapshot: Snapshot): LockState {
  let state: LockState
  try {
    state = LockState.restore(snapshot.state)
  } catch (error) {
    throw damaged(`${disk.path}/${name}`, 0, `its state cannot be read: ${(error as Error).message}`)
  }
  if (state.index === snapshot.index) return state
  throw damaged(`${disk.path}/${name}`, 0, `its state is that after entry ${state.index}`)
}

function replay(disk: Disk, state: LockState, entries: readonly Entry[], steps: ReportProgress): LockState {
  for (const [i, entry] of entries.entries()) {
    if (i % STEP_ENTRIES === 0) steps('replaying the log', i, entries.length)
    try {
      state.apply(lockEntryOf(entry), entry.index as LockState['index'])
    } catch (cause) {
      const why = (cause as Error).message
      throw new StorageError(`${disk.path}: entry ${entry.index} of the log cannot be applied: ${why}`, { cause })
    }
  }
  return state
}

/** Returns the entries between two snapshots; undefined when the log does not have all of them. */
function entriesBetween(entries: readonly Entry[], older: Snapshot, newer: Snapshot): readonly Entry[] | undefined {
  const between = entries.filter(({ index }) => index > older.index && index <= newer.index)
  const last = between.at(-1)
  const whole = between.length === newer.index - older.index && last?.term === newer.term
  return whole ? between : undefined
}
