import type { Entry, HardState, NodeId, SnapshotMeta } from './types.js'

export interface RaftLimits {
  /** Ticks without a leader until an election; each timeout is drawn from [n, 2n). */
  readonly electionTicks: number
  /** Ticks between heartbeats. */
  readonly heartbeatTicks: number
  /** Bytes of entries in one append; one entry always fits. */
  readonly appendBytesMax: number
  /** Appends in flight to one peer. */
  readonly inflightsMax: number
  /** Bytes in flight to one peer; 0: no bound. */
  readonly inflightBytesMax: number
  /** Bytes of proposals that are not applied yet; further ones are rejected. */
  readonly uncommittedBytesMax: number
  /** Bytes of committed entries in one `Effects`. */
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
  /** Returns a whole number, 0 ≤ n < limit. */
  readonly random: (limit: number) => number
}
