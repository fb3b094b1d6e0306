import type { LockState } from '@leasehold/core'
import type { Entry, RaftStatus } from '@leasehold/raft'
import { loopOf, type Replica } from './replica.js'

/** A read-only view of a member's internals, for checkers and reports. */
export interface Inspection {
  readonly raft: RaftStatus
  readonly state: LockState
  /** Index and term of the last applied entry. */
  readonly applied: { readonly index: number; readonly term: number }
  /** Returns the term of a log entry; undefined for compacted entries and beyond the end. */
  termAt(index: number): number | undefined
  entry(index: number): Entry | undefined
  /** Returns the highest committed entry that `node` has acknowledged, as far as this member knows. */
  acknowledged(node: number): { readonly index: number; readonly term: number } | undefined
}

/** Returns a view of a member's internals. Cheap: nothing is copied. */
export function inspect(replica: Replica): Inspection {
  const { raft, applier, peers } = loopOf(replica)
  return {
    raft: raft.status,
    state: applier.state,
    applied: { index: applier.index, term: applier.term },
    termAt: (index) => raft.termAt(index),
    entry: (index) => raft.entry(index),
    acknowledged: (node) => peers.memory.get(node),
  }
}
