import {
  type Command,
  type Configure,
  type Cursor,
  decodeEntry,
  type Entry,
  type Index,
  type LockState,
  type Result,
  StorageError,
  Writer,
} from '@leasehold/core'
import { type AppliedBatch, EventHistory, type RecordedEvent } from '@leasehold/replica'
import type { LogRow, Place } from './database.js'

const HISTORY = { events: 10_000, bytes: 8 * 1024 * 1024 }

/** Interval in entries at which all clients compare their states, and one of them writes a snapshot. */
export const CHECK_ENTRIES = 4_096

/** An entry that was applied here. */
export interface AppliedRow {
  readonly batch: AppliedBatch
  readonly results: readonly Result[]
  /** The entry began a new epoch: all earlier sessions and holds have ended. */
  readonly newEpoch: boolean
}

/** The lock state of this client, to which the log of the database is applied, with its position in the log. */
export class AppliedLog {
  readonly service: string
  state: LockState
  place: Place
  /** The state's hash at the last entry that was compared. */
  checked = { index: 0, hash: '' }
  #history: EventHistory

  constructor(service: string, state: LockState, place: Place) {
    this.service = service
    this.state = state
    this.place = place
    this.#history = new EventHistory(state.epoch, place.index as Index, HISTORY)
  }

  /** Applies one entry; `own`: its commands when the row does not carry them. */
  apply(row: LogRow, own: Uint8Array | undefined): AppliedRow {
    if (row.index !== this.place.index + 1) {
      throw new StorageError(`entry ${row.index} of the log came after ${this.place.index}`)
    }
    const commands = row.commands ?? own
    if (commands === undefined) throw new StorageError(`entry ${row.index} of the log is empty`)
    const { level, floor } = row
    const newEpoch = row.epoch !== this.state.epoch
    if (newEpoch) this.state = this.state.withEpoch(row.epoch, { level, floor }).state
    const index = row.index as Index
    const entry = decodeEntry(stamped(row.at, commands))
    const configure = newEpoch ? undefined : configureOf(row)
    const applied = this.state.apply(configure ? before(configure, entry) : entry, index)
    const { pushes, events } = applied
    if (configure && applied.results[0]?.kind !== 'configured') {
      throw new StorageError(`entry ${index} of the log asks for level ${level}, floor ${floor}: refused`, {
        hint: 'update this client',
      })
    }
    const results = configure ? applied.results.slice(1) : applied.results
    this.place = { index, nonce: row.nonce }
    if (newEpoch) this.#history = new EventHistory(row.epoch, index, HISTORY)
    else this.#history.add(index, events)
    if (index % CHECK_ENTRIES === 0) this.checked = { index, hash: this.state.hash() }
    return { batch: { index, commands: results.length, pushes, events }, results, newEpoch }
  }

  since(from: Cursor): readonly RecordedEvent[] | undefined {
    return this.#history.since(from)
  }
}

/** The command that the database itself put before an entry. */
function configureOf({ level, floor }: LogRow): Configure | undefined {
  if (level === undefined && floor === undefined) return undefined
  return { kind: 'configure', ...(level !== undefined && { level }), ...(floor !== undefined && { floor }) }
}

function before(command: Command, { at, commands }: Entry): Entry {
  return { at, commands: [command, ...commands] }
}

/** The encoded entry: the timestamp of the database, then the commands. */
function stamped(at: number, commands: Uint8Array): Uint8Array {
  const writer = new Writer(commands.length + 9)
  writer.varuint(at)
  writer.raw(commands)
  return writer.take()
}
