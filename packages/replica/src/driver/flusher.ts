import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import type { Log } from '../log/log.js'
import type { Clock } from '../platform.js'

/** A blocking write that takes this long or more is too slow to block everything else. */
const BLOCKING_SLOW_MS = 3
/** After a slow one, this many flushes go the other way before blocking is tried again. */
const BLOCKING_PAUSE_FLUSHES = 256

/** Something to make durable; `sequence` is reported once it is, and everything before it. */
export interface Flush {
  readonly sequence: number
  readonly hardState?: HardState | undefined
  readonly entries: readonly Entry[]
  readonly base?: { readonly index: Index; readonly term: Term } | undefined
  /** False: losing it is harmless; it goes with the next flush that must be synced. */
  readonly mustSync: boolean
}

export interface FlusherOptions {
  readonly log: Log
  readonly clock: Clock
  /** Whether a blocking write may be used at all. */
  readonly blocking: boolean
  /** A write that did not block has come to its end. */
  readonly done: (sequence: number, error: Error | undefined) => void
}

/** Writes to the log, one flush at a time. What comes up meanwhile goes together into the next: group commit. */
export class Flusher {
  private waiting: Flush | undefined
  private writing = false
  private pause = 0

  constructor(private readonly options: FlusherOptions) {}

  /** Nothing is being written, and nothing waits. */
  get idle(): boolean {
    return !this.writing && this.waiting === undefined
  }

  add(flush: Flush): void {
    this.waiting = this.waiting ? merge(this.waiting, flush) : flush
  }

  /**
   * Starts the next write, if none is under way. `single`: only one operation waits for it, and blocking is the shortest way.
   * Returns the sequence that is durable now, if the write has been done already. Throws when a blocking write failed.
   */
  start(single: boolean): number | undefined {
    const flush = this.waiting
    if (this.writing || !flush) return undefined
    const { log } = this.options
    this.waiting = undefined
    if (!flush.mustSync) return flush.sequence
    if (single && this.blocks() && this.timed(() => log.appendSync(flush))) return flush.sequence
    this.writing = true
    log.append(flush, (error) => {
      this.writing = false
      this.options.done(flush.sequence, error)
    })
    return undefined
  }

  private blocks(): boolean {
    if (!this.options.blocking) return false
    if (this.pause > 0) this.pause--
    return this.pause === 0
  }

  private timed(write: () => boolean): boolean {
    const { clock } = this.options
    const before = clock.monotonicMs()
    const written = write()
    if (clock.monotonicMs() - before >= BLOCKING_SLOW_MS) this.pause = BLOCKING_PAUSE_FLUSHES
    return written
  }
}

/** Two flushes as one: a later suffix replaces the same part of an earlier one. */
function merge(first: Flush, second: Flush): Flush {
  const hardState = second.hardState ?? first.hardState
  const mustSync = first.mustSync || second.mustSync
  if (second.base) return { sequence: second.sequence, hardState, base: second.base, entries: second.entries, mustSync }
  const from = second.entries[0]?.index
  const kept = from === undefined ? first.entries : first.entries.filter((entry) => entry.index < from)
  return { sequence: second.sequence, hardState, base: first.base, entries: [...kept, ...second.entries], mustSync }
}
