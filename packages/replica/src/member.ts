import type { Command, Cursor, Event, Index, Push, Result } from '@leasehold/core'
import type { ExportResult } from './snapshots/state-export.js'

/** How a member stands, now. */
export interface MemberStatus {
  readonly cluster: string
  readonly epoch: number
  readonly member: string
  readonly role: 'leader' | 'follower' | 'candidate' | 'learner' | 'stopped'
  /** Name of the leader, '' when none is known. */
  readonly leader: string
  readonly leaderUrl: string
  readonly term: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly disk: 'ok' | 'full'
  /** Why the member stopped, if it did. */
  readonly failure: string | undefined
  /** What to do about it, where that is known. */
  readonly failureHint?: string | undefined
}

/** The part of the applied state that readers may use between two entries; never kept across a callback. */
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
 * A callback never runs inside the call that was given it.
 */
export interface Member<State> {
  readonly status: MemberStatus
  /**
   * Puts a command into the open batch. `done` gets the result once the entry is committed and applied here, or a
   * refusal: `no-quorum` (not leader, nothing was proposed), `unknown-outcome` (proposed, and leadership was lost before
   * the outcome was known), `storage` (disk full or member stopped), `limit` (the queue of proposals is full).
   * Secrets that the leader mints (`openSession.secret`, `acquire.secret`, `adopt.newSecret`) are filled in here.
   */
  submit(command: Command, done: (result: Result) => void): void
  /** A linearizable read (ReadIndex): `done` runs on a state that includes everything acknowledged before the call. */
  read(done: (view: ReadView<State> | { readonly refused: Result & { kind: 'refused' } }) => void): void
  /** What this member has applied, now; may be behind. */
  stale(): ReadView<State>
  /**
   * Writes the state down as it is now, or some entries later, in slices between which everything else goes on. Left
   * out where that cannot be done: there is `exportAtOnce`.
   */
  exportState?(done: (answer: ExportResult) => void): void
  /** Runs after each applied entry, before the results of its commands are handed out. */
  onApplied(listener: (batch: AppliedBatch) => void): () => void
  /** Runs when a burst of applied entries and results has been handed out: the moment to flush connections. */
  onIdle(listener: () => void): () => void
  onStatus(listener: (status: MemberStatus) => void): () => void
  /** Events after `from` that are still in memory, oldest first; undefined: a gap. */
  history(from: Cursor): readonly { readonly cursor: Cursor; readonly event: Event }[] | undefined
  /**
   * Checks that the data folder is still there and still this member's. `done` gets why it cannot be relied on now. A folder
   * that is lost stops the member before. Left out where there is no folder.
   */
  checkFolder?(done: (problem: string | undefined) => void): void
  /** Answers what can be answered, syncs, closes the files. `done` runs when nothing of it is left. */
  stop(done: () => void): void
}
