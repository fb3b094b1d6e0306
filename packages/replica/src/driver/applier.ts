import {
  assert,
  decodeEntry,
  type Cursor,
  type Entry as LockEntry,
  type Index,
  type LockState,
  type Millis,
  type Result,
} from '@leasehold/core'
import type { Entry } from '@leasehold/raft'
import type { AppliedBatch } from '../member.js'
import { entryBytes } from '../log/entry-codec.js'
import { EventHistory, type EventHistoryOptions, type RecordedEvent } from './event-history.js'

/** The content of an entry without commands: it advances the index only. */
const NOTHING: LockEntry = { at: 0 as Millis, commands: [] }

/** Decodes the commands of a log entry. Configuration and empty entries have none. */
export function lockEntryOf(entry: Entry): LockEntry {
  return entry.kind === 'normal' && entry.data.length > 0 ? decodeEntry(entry.data) : NOTHING
}

/** Applies committed entries to the lock state, in log order. State and index change together. */
export class Applier {
  readonly #historyOptions: EventHistoryOptions
  index: Index
  /** Bytes of log entries applied since the last snapshot. */
  bytesSinceSnapshot = 0
  #history: EventHistory

  constructor(
    public state: LockState,
    index: number,
    /** Term of the last applied entry. */
    public term: number,
    historyOptions: EventHistoryOptions,
  ) {
    this.#historyOptions = historyOptions
    this.index = index as Index
    this.#history = new EventHistory(state.epoch, this.index, historyOptions)
  }

  /** Applies one entry. Returns the results of its commands, in order. */
  apply(entry: Entry): { readonly batch: AppliedBatch; readonly results: readonly Result[] } {
    assert(entry.index === this.index + 1, () => `entry ${entry.index} is applied after ${this.index}`)
    const index = entry.index as Index
    const content = lockEntryOf(entry)
    const { results, pushes, events } = this.state.apply(content, index)
    assert(
      results.length === content.commands.length,
      () => `${results.length} results of ${content.commands.length} commands`,
    )
    this.index = index
    this.term = entry.term
    this.bytesSinceSnapshot += entryBytes(entry)
    this.#history.add(index, events)
    return { batch: { index, commands: results.length, pushes, events }, results }
  }

  /** Replaces the state with a snapshot from the leader. */
  install(state: LockState, index: number, term: number): void {
    assert(index > this.index, () => `snapshot ${index} is installed over ${this.index}`)
    this.state = state
    this.index = index as Index
    this.term = term
    this.bytesSinceSnapshot = 0
    this.#history = new EventHistory(state.epoch, this.index, this.#historyOptions)
  }

  since(from: Cursor): readonly RecordedEvent[] | undefined {
    return this.#history.since(from)
  }
}
