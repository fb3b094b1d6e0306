import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import type { Disk } from '../platform.js'
import { damaged } from '../storage/storage-errors.js'
import { type Recovered, recoverLog } from './recovery.js'

/** A log as read from the disk, reconciled with the newest snapshot. */
export interface ReadLog {
  readonly recovered: Recovered
  /** The entries after the snapshot. */
  readonly entries: readonly Entry[]
  readonly hardState: HardState
}

/**
 * Reads and checks a log without changing anything.
 * @throws StorageError that names file and offset when complete data has changed or is missing.
 */
export function readLog(
  disk: Disk,
  identity: number,
  snapshot: { readonly index: Index; readonly term: Term },
): ReadLog {
  const recovered = recoverLog(disk, identity, snapshot.index)
  const { entries } = reconcileSnapshot(recovered, snapshot)
  const last = entries.at(-1)?.index ?? snapshot.index
  return { recovered, entries, hardState: checkHardState(disk, recovered.hardState, snapshot, last) }
}

/** Returns the log after the snapshot. A log that ends before it or conflicts with it is void: an installation was interrupted. */
export function reconcileSnapshot(
  recovered: Recovered,
  snapshot: { readonly index: Index; readonly term: Term },
): { readonly entries: Entry[]; readonly needBase: boolean } {
  const { entries, base } = recovered
  const begin = entries[0]?.index ?? (base ? base.index + 1 : snapshot.index + 1)
  const last = begin + entries.length - 1
  const at = entries[snapshot.index - begin]
  const conflict = at !== undefined && at.term !== snapshot.term
  if (last < snapshot.index || conflict) return { entries: [], needBase: snapshot.index > 0 }
  return { entries: entries.slice(snapshot.index + 1 - begin), needBase: false }
}

/** Returns term, vote and commit index after the snapshot. @throws StorageError when committed entries are missing */
export function checkHardState(
  disk: Disk,
  hardState: HardState | undefined,
  snapshot: { readonly index: Index; readonly term: Term },
  last: Index,
): HardState {
  const found = hardState ?? { term: snapshot.term, vote: 0, commit: snapshot.index }
  if (found.commit > last) {
    throw damaged(disk.path, 0, `the log ends at entry ${last}, but entry ${found.commit} was committed here`)
  }
  const commit = Math.max(found.commit, snapshot.index)
  // If its own term was lower, this member has not voted in the snapshot's term.
  return found.term < snapshot.term ? { term: snapshot.term, vote: 0, commit } : { ...found, commit }
}
