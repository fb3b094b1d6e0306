/** A member's identity: a safe integer ≥ 1, drawn at random on an empty disk and never used again after a wipe. */
export type NodeId = number
/** A Raft term (thesis 3.3). */
export type Term = number
/** A position in the log; the first entry has index 1, and 0 is before it. */
export type Index = number

/** A configuration: its voters, those of the outgoing configuration while joint, and learners (thesis 4). */
export interface Configuration {
  readonly voters: readonly NodeId[]
  /** Not empty exactly while the configuration is joint. */
  readonly votersOutgoing: readonly NodeId[]
  readonly learners: readonly NodeId[]
  /** Outgoing voters that become learners when the joint configuration is left. */
  readonly learnersNext: readonly NodeId[]
  readonly autoLeave: boolean
}

export type ConfigurationStep =
  | { readonly kind: 'addVoter'; readonly node: NodeId }
  | { readonly kind: 'addLearner'; readonly node: NodeId }
  | { readonly kind: 'remove'; readonly node: NodeId }
  | { readonly kind: 'update'; readonly node: NodeId }

/** A change of the configuration. Without steps, it leaves a joint configuration. `context` is opaque data of the program. */
export interface ConfigurationChange {
  readonly transition: 'auto' | 'jointImplicit' | 'jointExplicit'
  readonly steps: readonly ConfigurationStep[]
  readonly context: Uint8Array
}

export type Entry =
  | { readonly term: Term; readonly index: Index; readonly kind: 'normal'; readonly data: Uint8Array }
  | { readonly term: Term; readonly index: Index; readonly kind: 'configuration'; readonly change: ConfigurationChange }

export interface HardState {
  readonly term: Term
  /** 0: none. */
  readonly vote: NodeId
  readonly commit: Index
}

/** A snapshot, which replaces the log up to and including `index`. The program keeps the state itself. */
export interface SnapshotMeta {
  readonly index: Index
  readonly term: Term
  readonly configuration: Configuration
}
