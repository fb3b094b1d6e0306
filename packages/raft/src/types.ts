/** A member's identity: minted at random on an empty disk, never used again after a wipe. A safe integer ≥ 1. */
export type NodeId = number
/** A Raft term (thesis 3.3). */
export type Term = number
/** Position in the log; the first entry has index 1. 0: before the log. */
export type Index = number

/** Membership: voters of the (incoming) configuration, of the outgoing one while joint, and learners (thesis 4). */
export interface Configuration {
  readonly voters: readonly NodeId[]
  /** Not empty while a joint change is under way. */
  readonly votersOutgoing: readonly NodeId[]
  readonly learners: readonly NodeId[]
  /** Voters of the outgoing half that become learners when the joint configuration is left. */
  readonly learnersNext: readonly NodeId[]
  readonly autoLeave: boolean
}

export type ConfigurationStep =
  | { readonly kind: 'addVoter'; readonly node: NodeId }
  | { readonly kind: 'addLearner'; readonly node: NodeId }
  | { readonly kind: 'remove'; readonly node: NodeId }
  | { readonly kind: 'update'; readonly node: NodeId }

/** What a configuration entry asks for. No steps: leave the joint configuration. `context` is the program's own. */
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

/** What stands for the log up to and including `index`. The state itself is the program's; the core knows only this. */
export interface SnapshotMeta {
  readonly index: Index
  readonly term: Term
  readonly configuration: Configuration
}
