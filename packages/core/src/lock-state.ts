import type { HoldId, Index, Millis, Serial, SessionId } from './brand.js'
import { FLOOR_MAX } from './counter-floor.js'
import { DEFAULT_LIMITS, LEVEL_MAX } from './limits.js'
import type { Applied, Entry, Limits } from './operations.js'
import { apply, nextDeadline } from './state/apply.js'
import { assert } from './assert.js'
import { type RaiseOptions, raiseEpoch } from './state/epoch.js'
import { Machine } from './state/machine.js'
import { decodeSnapshot, SnapshotReader } from './state/snapshot.js'
import { SnapshotWriter } from './state/snapshot-writer.js'
import { EPOCH_MAX } from './tokens.js'

/**
 * The replicated lock state: pure and deterministic. Two states that were fed the same entries are equal, on every machine.
 *
 * @example
 * const state = LockState.create({ epoch: 1 })
 * const { results } = state.apply({ at: 1000 as Millis, commands: [] }, 1 as Index)
 */
export class LockState {
  private constructor(
    /** For the queries beside this file; nobody else may touch it. */
    readonly machine: Machine,
  ) {}

  /**
   * An empty state. `level`: its feature level, the highest by default. `floor`: no counter value up to it is granted;
   * default 0, so that ids start at 1.
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

  /** Reads what {@link LockState.snapshot} wrote. Throws on anything else. */
  static restore(bytes: Uint8Array): LockState {
    return new LockState(decodeSnapshot(bytes))
  }

  /**
   * Reads the same step by step: each call of `step` reads about so many bytes, and the last one gives the state. Throws
   * like {@link LockState.restore}.
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

  /** Index of the last applied entry; 0 before the first. */
  get index(): Index {
    return this.machine.index
  }

  /** Cluster time. */
  get now(): Millis {
    return this.machine.now as Millis
  }

  /** The last value drawn from the replicated counter, or the floor below which none is drawn. */
  get counter(): Serial {
    return this.machine.counter as Serial
  }

  get limits(): Limits {
    return this.machine.limits
  }

  get level(): number {
    return this.machine.level
  }

  /** Whether anything exists that time can end: a session, a wait or a delay. */
  get hasDeadlines(): boolean {
    return this.machine.deadlines.size > 0
  }

  /** Cluster time of the next thing that is due; undefined when nothing is. */
  nextDeadline(): Millis | undefined {
    return nextDeadline(this.machine)?.dueAt as Millis | undefined
  }

  /** Sessions that live in the service's own process, in the order of their ids. */
  localSessions(): SessionId[] {
    return [...this.machine.sessions.values()].filter((session) => session.local).map((session) => session.id)
  }

  /** Applies an entry. Indexes grow; an index without a lock entry may be left out. */
  apply(entry: Entry, index: Index): Applied {
    return apply(this.machine, entry, index)
  }

  /** The whole state as bytes, the same for equal states. */
  snapshot(): Uint8Array {
    return SnapshotWriter.whole(this.machine)
  }

  /**
   * Begins a snapshot of the state as it is now, which is made in steps while entries go on being applied. One at a time;
   * its bytes are those that {@link LockState.snapshot} would give now.
   */
  beginSnapshot(): SnapshotWriter {
    return SnapshotWriter.open(this.machine)
  }

  /** 16 hex digits over the whole state: equal for equal states. Costs nothing that grows with the state. */
  hash(): string {
    return this.machine.digest()
  }

  /**
   * A copy in a later epoch, as after a restore from a backup: without sessions, waiters, delays and ordinary holds;
   * persistent holds stay under new ids. `moved` lists them.
   */
  withEpoch(epoch: number, options?: RaiseOptions): { state: LockState; moved: { from: HoldId; to: HoldId }[] } {
    const { machine, moved } = raiseEpoch(this.machine, epoch, options)
    return { state: new LockState(machine), moved }
  }
}
