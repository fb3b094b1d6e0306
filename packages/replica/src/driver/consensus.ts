import type { Configuration, ConfigurationChange, Entry, HardState, Index, NodeId, Term } from '@leasehold/raft'

/** What must be durable before `sequence` may be reported by `persisted`. */
export interface PersistEffect {
  readonly sequence: number
  readonly hardState: HardState | undefined
  /** They replace the log from `entries[0].index` on. */
  readonly entries: readonly Entry[]
}

export interface ReadReady {
  readonly context: number
  /** The read may run once this index is applied. */
  readonly index: Index
}

export interface Effects {
  readonly persist: PersistEffect | undefined
  readonly committed: readonly Entry[]
  readonly reads: readonly ReadReady[]
}

/** What the driver needs of consensus. Inputs in, effects out; nothing runs by itself. */
export interface Consensus {
  readonly role: 'leader' | 'follower' | 'candidate' | 'learner'
  readonly term: Term
  /** 0: none known. */
  readonly leader: NodeId
  readonly commit: Index
  readonly configuration: Configuration
  tick(): void
  /** Stands for election now; a service of one does so at its start. */
  campaign(): void
  /** The index that the entry got; undefined: not leader, or too much is uncommitted. */
  propose(data: Uint8Array): Index | undefined
  read(context: number): void
  persisted(sequence: number): void
  applied(index: Index): void
  applyConfiguration(change: ConfigurationChange): void
  /** Entries up to `index` may be forgotten: a snapshot stands for them. */
  compact(index: Index): void
  takeEffects(): Effects
}
