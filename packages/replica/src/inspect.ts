import type { LockState } from '@leasehold/core'
import type { Entry, RaftStatus } from '@leasehold/raft'
import { loopOf, type Replica } from './replica.js'

/** What is inside a member, for checkers and reports. To be looked at, never to be changed. */
export interface Inspection {
  readonly raft: RaftStatus
  readonly state: LockState
  /** Index and term of the last applied entry. */
  readonly applied: { readonly index: number; readonly term: number }
  /** Terms of the log; undefined where it is compacted or does not reach. */
  termAt(index: number): number | undefined
  entry(index: number): Entry | undefined
  /** The highest committed entry that this member knows `node` to have acknowledged. */
  acknowledged(node: number): { readonly index: number; readonly term: number } | undefined
}

/** Looks into a member. Cheap: nothing is copied. */
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
