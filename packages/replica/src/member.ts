import type { Command, Cursor, Event, Index, Push, Result } from '@leasehold/core'
import type { ExportResult } from './snapshots/state-export.js'

/** The current status of a member. */
export interface MemberStatus {
  readonly cluster: string
  readonly epoch: number
  readonly member: string
  readonly role: 'leader' | 'follower' | 'candidate' | 'learner' | 'stopped'
  /** Name of the leader; '' when none is known. */
  readonly leader: string
  readonly leaderUrl: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: 'ok' | 'full'
  /** Why the member stopped; undefined while it runs. */
  readonly failure: string | undefined
  /** What to do about the failure, where that is known. */
  readonly failureHint?: string | undefined
}

/** The applied state, for reading between two entries. Must not be kept after the callback returns. */
export interface ReadView<State> {
  readonly state: State
  readonly index: Index
}

export interface AppliedBatch {
  readonly index: Index
  /** How many commands the entry had. */
  readonly commands: number
  readonly pushes: readonly Push[]
  readonly events: readonly Event[]
}

/**
 * One member of the service, as the server and the embedded engine use it. Callbacks come in log order.
 * A callback never runs inside the call that registers it.
 */
export interface Member<State> {
  readonly status: MemberStatus
  /**
   * Adds a command to the open batch. `done` gets the result once the entry is committed and applied here, or a refusal:
   * `no-quorum` (not leader, nothing was proposed), `unknown-outcome` (proposed, and leadership was lost before the outcome
   * was known), `storage` (disk full or member stopped), `limit` (the proposal queue is full). Fills in the secrets that the
   * leader mints (`openSession.secret`, `acquire.secret`, `adopt.newSecret`).
   */
  submit(command: Command, done: (result: Result) => void): void
  /** Runs a linearizable read (ReadIndex): `done` gets a state that includes everything acknowledged before the call. */
  read(done: (view: ReadView<State> | { readonly refused: Result & { kind: 'refused' } }) => void): void
  /** Returns what this member has applied so far, which may lag behind the cluster. */
  stale(): ReadView<State>
  /**
   * Exports the state as of now or a few entries later, in slices that leave time for other work. Absent where slicing is
   * not possible: use `exportAtOnce` there.
   */
  exportState?(done: (answer: ExportResult) => void): void
  /** Registers a listener that runs after each applied entry, before the callbacks of its commands. */
  onApplied(listener: (batch: AppliedBatch) => void): () => void
  /** Registers a listener that runs after a burst of applied entries and results: the moment to flush connections. */
  onIdle(listener: () => void): () => void
  onStatus(listener: (status: MemberStatus) => void): () => void
  /** Returns the events after `from`, oldest first; undefined when some of them are no longer in memory. */
  history(from: Cursor): readonly { readonly cursor: Cursor; readonly event: Event }[] | undefined
  /**
   * Checks that the data folder still exists and still belongs to this member. `done` gets the problem, or undefined. A lost
   * folder stops the member first. Absent on members without a folder.
   */
  checkFolder?(done: (problem: string | undefined) => void): void
  /** Finishes pending commands where possible, syncs, and closes the files. `done` runs when everything has stopped. */
  stop(done: () => void): void
}
