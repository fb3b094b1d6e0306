import type { HoldId, Index, Millis, Serial, SessionId } from './brand.js'
import { FLOOR_MAX } from './counter-floor.js'
import { DEFAULT_LIMITS, LEVEL_MAX } from './limits.js'
import type { Applied, Entry, Limits } from './operations.js'
import { apply, nextDeadline } from './state/apply.js'
import { assert } from './assert.js'
import { type RaiseOptions, raiseEpoch } from './state/epoch.js'
import { Machine } from './state/machine.js'
import { decodeSnapshot, SnapshotReader } from './state/snapshot-reader.js'
import { SnapshotWriter } from './state/snapshot-writer.js'
import { EPOCH_MAX } from './tokens.js'

/**
 * The replicated lock state: pure and deterministic. Two states that have applied the same entries are equal, on every
 * machine.
 *
 * @example
 * const state = LockState.create({ epoch: 1 })
 * const { results } = state.apply({ at: 1000 as Millis, commands: [] }, 1 as Index)
 */
export class LockState {
  private constructor(
    /** Only for the queries of this package. */
    readonly machine: Machine,
  ) {}

  /**
   * Creates an empty state. `level` is its feature level, by default the highest. No counter value up to `floor` is granted;
   * the default is 0, so that ids start at 1.
   */
  static create(options: { epoch: number; limits?: Partial<Limits>; level?: number; floor?: Serial }): LockState {
    const { epoch, limits, level = LEVEL_MAX, floor = 0 } = options
    assert(
      Number.isSafeInteger(epoch) && epoch >= 1 && epoch <= EPOCH_MAX,
      `an epoch is 1 to ${EPOCH_MAX}, not ${epoch}`,
    )
    assert(level >= 1 && level <= LEVEL_MAX, `a feature level is 1 to ${LEVEL_MAX}, not ${level}`)
    assert(
      Number.isSafeInteger(floor) && floor >= 0 && floor <= FLOOR_MAX,
      `a floor is 0 to ${FLOOR_MAX}, not ${floor}`,
    )
    const machine = new Machine(epoch, { ...DEFAULT_LIMITS, ...limits })
    machine.level = level
    machine.raiseCounter(floor as Serial)
    return new LockState(machine)
  }

  /**
   * Restores the state from a snapshot.
   * @throws CodecError, InvariantError for bytes that are not a snapshot
   */
  static restore(bytes: Uint8Array): LockState {
    return new LockState(decodeSnapshot(bytes))
  }

  /**
   * Restores the state in steps: each call of `step` reads about the given number of bytes, and the last one returns the
   * state. Throws like {@link LockState.restore}.
   */
  static beginRestore(bytes: Uint8Array): { step(bytes: number): LockState | undefined } {
    const reading = new SnapshotReader(bytes)
    return {
      step(count) {
        const machine = reading.step(count)
        return machine && new LockState(machine)
      },
    }
  }

  get epoch(): number {
    return this.machine.epoch
  }

  /** The index of the last applied entry; 0 before the first. */
  get index(): Index {
    return this.machine.index
  }

  /** Cluster time. */
  get now(): Millis {
    return this.machine.now as Millis
  }

  /** The last value drawn from the replicated counter, or the floor if that is higher. */
  get counter(): Serial {
    return this.machine.counter as Serial
  }

  get limits(): Limits {
    return this.machine.limits
  }

  get level(): number {
    return this.machine.level
  }

  /** Whether anything can expire: a session, a wait or a lock delay. */
  get hasDeadlines(): boolean {
    return this.machine.deadlines.size > 0
  }

  /** The cluster time of the next expiry; undefined if nothing can expire. */
  nextDeadline(): Millis | undefined {
    return nextDeadline(this.machine)?.dueAt as Millis | undefined
  }

  /** The sessions in the service's own process, by ascending id. */
  localSessions(): SessionId[] {
    return [...this.machine.sessions.values()].filter((session) => session.local).map((session) => session.id)
  }

  /** Applies an entry. Indexes increase; those without a lock entry may be skipped. */
  apply(entry: Entry, index: Index): Applied {
    return apply(this.machine, entry, index)
  }

  /** Returns the whole state as bytes, the same for equal states. */
  snapshot(): Uint8Array {
    return SnapshotWriter.whole(this.machine)
  }

  /**
   * Begins a snapshot of the current state, which is written in steps while more entries are applied. Its bytes are those that
   * {@link LockState.snapshot} would return now. There may be one at a time.
   */
  beginSnapshot(): SnapshotWriter {
    return SnapshotWriter.open(this.machine)
  }

  /** 16 hex digits over the whole state: equal for equal states. Takes constant time. */
  hash(): string {
    return this.machine.digest()
  }

  /**
   * Returns a copy in a later epoch, as for a restore from a backup: without sessions, waiters, delays and ordinary holds.
   * Persistent holds remain under new ids, which `moved` lists.
   */
  withEpoch(epoch: number, options?: RaiseOptions): { state: LockState; moved: { from: HoldId; to: HoldId }[] } {
    const { machine, moved } = raiseEpoch(this.machine, epoch, options)
    return { state: new LockState(machine), moved }
  }
}
