import type { Entry, HardState, NodeId, SnapshotMeta } from './types.js'

export interface RaftLimits {
  /** Ticks without a leader until an election; drawn anew from [n, 2n). */
  readonly electionTicks: number
  /** Ticks between heartbeats. */
  readonly heartbeatTicks: number
  /** Bytes of entries in one append; one entry always fits. */
  readonly appendBytesMax: number
  /** Appends in flight to one peer, by number and by bytes (0: no bound). */
  readonly inflightsMax: number
  readonly inflightBytesMax: number
  /** Bytes of proposals that are not applied yet; beyond it they are refused. */
  readonly uncommittedBytesMax: number
  /** Bytes of committed entries handed out at once. */
  readonly committedBytesMax: number
  /** Reads that wait for their confirmation. */
  readonly readsMax: number
}

export const DEFAULT_RAFT_LIMITS: RaftLimits = {
  electionTicks: 10,
  heartbeatTicks: 1,
  appendBytesMax: 1024 * 1024,
  inflightsMax: 256,
  inflightBytesMax: 64 * 1024 * 1024,
  uncommittedBytesMax: 64 * 1024 * 1024,
  committedBytesMax: 16 * 1024 * 1024,
  readsMax: 10_000,
}

export interface RaftOptions {
  readonly id: NodeId
  readonly snapshot: SnapshotMeta
  readonly hardState: HardState
  /** The log after the snapshot. */
  readonly entries: readonly Entry[]
  readonly limits?: Partial<RaftLimits>
  /** A whole number, 0 ≤ n < limit. */
  readonly random: (limit: number) => number
  /** Both always on outside script tests (docs/divergence.md). */
  readonly preVote?: boolean
  readonly checkQuorum?: boolean
  /** Only for script tests: entries may be applied before they are durable here; they are durable on a quorum. */
  readonly applyUnwritten?: boolean
  /**
   * What a leader does that has applied its own removal or demotion. `handOver` (default): takes no more proposals, brings
   * a voter up to date and makes it lead; only then is it sure that the others know what it had committed. The others
   * are for script tests.
   */
  readonly afterRemoval?: 'handOver' | 'stay' | 'stepDown'
  /** Only for script tests: configuration changes are appended without the three checks. */
  readonly unchecked?: boolean
  /** Only for script tests: the follower never hands proposals on. */
  readonly noForwarding?: boolean
  /** Only for script tests: forgetting the leader is refused, as with lease-based reads. */
  readonly leaseReads?: boolean
}
