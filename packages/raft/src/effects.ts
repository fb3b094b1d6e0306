import type { Message } from './messages.js'
import type { ReadReady, Role } from './raft-state.js'
import type { Entry, HardState, NodeId, SnapshotMeta } from './types.js'

/** What must be durable before `persisted(sequence)` may be called. Writes complete in the order of their sequence. */
export interface PersistEffect {
  readonly sequence: number
  readonly hardState: HardState
  /** Replace the log from `entries[0].index` on. */
  readonly entries: readonly Entry[]
  /** Replaces the log and the state; the program has the state that belongs to it. */
  readonly snapshot: SnapshotMeta | undefined
  /** False if only the commit index moved: it may be lost in a crash, so it need not be synced. */
  readonly mustSync: boolean
}

/** Everything that the program must do since the last call. */
export interface Effects {
  readonly role: Role
  readonly leader: NodeId
  /** The hard state if it differs from the previous one. */
  readonly hardState: HardState | undefined
  readonly persist: PersistEffect | undefined
  /** May leave at once. */
  readonly messages: readonly Message[]
  /** May leave once `persist` is durable (or at once without one). Without those to this member itself. */
  readonly gated: readonly Message[]
  /** All messages that wait for the write: `gated`, and this member's own vote and acknowledgements, which `persisted` counts. */
  readonly waiting: readonly Message[]
  /** To be applied, in order; then `applied(index)`. */
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadReady[]
  /** Contexts of reads that will not be answered: read again. */
  readonly readsLost: readonly number[]
  /** Whether a peer needs a snapshot and there is none: the program should take one now. */
  readonly snapshotWanted: boolean
}

export const NOTHING: readonly never[] = []

/** The effects of an input that has none. */
export const NO_EFFECTS: Omit<Effects, 'role' | 'leader'> = {
  hardState: undefined,
  persist: undefined,
  messages: NOTHING,
  gated: NOTHING,
  waiting: NOTHING,
  committed: NOTHING,
  reads: NOTHING,
  readsLost: NOTHING,
  snapshotWanted: false,
}
