import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import type { Log } from '../log/log.js'
import type { Clock } from '../platform.js'

/**
 * A write that blocks saves the way to another thread and back, which costs more than a quick disk takes. One that takes
 * this long on average is too slow to let everything else wait.
 */
const BLOCKING_MS = 1
/** Part of the last write in the average. */
const WEIGHT = 1 / 8

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
  readonly #options: FlusherOptions
  #waiting: Flush | undefined
  #isWriting = false
  #startedMs = 0
  /** How long a write takes, in milliseconds. */
  #averageMs = 0

  constructor(options: FlusherOptions) {
    this.#options = options
  }

  /** Nothing is being written, and nothing waits. */
  get isIdle(): boolean {
    return !this.#isWriting && this.#waiting === undefined
  }

  /** How long the write under way has taken, in milliseconds; 0 when there is none. */
  get underWayMs(): number {
    return this.#isWriting ? this.#options.clock.monotonicMs() - this.#startedMs : 0
  }

  add(flush: Flush): void {
    this.#waiting = this.#waiting ? merge(this.#waiting, flush) : flush
  }

  /**
   * Starts the next write, if none is under way. `mayBlock`: nothing that could be done meanwhile is held up.
   * Returns the sequence that is durable now, if the write has been done already. Throws when a blocking write failed.
   */
  start(mayBlock: boolean): number | undefined {
    const flush = this.#waiting
    if (this.#isWriting || !flush) return undefined
    const { log, clock, blocking, done } = this.#options
    this.#waiting = undefined
    if (!flush.mustSync) return flush.sequence
    const begun = clock.monotonicMs()
    if (blocking && mayBlock && this.#averageMs < BLOCKING_MS && log.appendSync(flush)) {
      this.#noteDuration(begun)
      return flush.sequence
    }
    this.#isWriting = true
    this.#startedMs = begun
    log.append(flush, (error) => {
      this.#isWriting = false
      this.#noteDuration(begun)
      done(flush.sequence, error)
    })
    return undefined
  }

  #noteDuration(begun: number): void {
    this.#averageMs += (this.#options.clock.monotonicMs() - begun - this.#averageMs) * WEIGHT
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
