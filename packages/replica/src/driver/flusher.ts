import type { Entry, HardState, Index, Term } from '@leasehold/raft'
import type { Log } from '../log/log.js'
import type { Clock } from '../platform.js'

/**
 * A blocking write saves the round trip to another thread, which takes longer than a fast disk. At this average, in
 * milliseconds, a write is too slow to block everything else.
 */
const BLOCKING_MS = 1
/** Weight of the latest write in the average. */
const WEIGHT = 1 / 8

/** A change to make durable. `sequence` is reported once it and all earlier ones are durable. */
export interface Flush {
  readonly sequence: number
  readonly hardState?: HardState | undefined
  readonly entries: readonly Entry[]
  readonly base?: { readonly index: Index; readonly term: Term } | undefined
  /** False: losing it is harmless (a moved commit index), so it is written only together with another change. */
  readonly mustSync: boolean
}

export interface FlusherOptions {
  readonly log: Log
  readonly clock: Clock
  /** Whether blocking writes are allowed. */
  readonly blocking: boolean
  /** Runs when a non-blocking write has completed. */
  readonly done: (sequence: number, error: Error | undefined) => void
}

/** Writes to the log, one flush at a time. Changes that arrive meanwhile share the next flush: group commit. */
export class Flusher {
  readonly #options: FlusherOptions
  #waiting: Flush | undefined
  #isWriting = false
  #startedMs = 0
  /** Moving average of the duration of a write. */
  #averageMs = 0

  constructor(options: FlusherOptions) {
    this.#options = options
  }

  /** Whether nothing is being written and nothing waits. */
  get isIdle(): boolean {
    return !this.#isWriting && this.#waiting === undefined
  }

  /** How long the current write has taken, in milliseconds; 0 when there is none. */
  get underWayMs(): number {
    return this.#isWriting ? this.#options.clock.monotonicMs() - this.#startedMs : 0
  }

  add(flush: Flush): void {
    this.#waiting = this.#waiting ? merge(this.#waiting, flush) : flush
  }

  /**
   * Starts the next write unless one is in progress. `mayBlock`: a blocking write would delay nothing. Returns the durable
   * sequence if the write has already completed. Throws when a blocking write failed.
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

/** Merges two flushes: a later suffix replaces the same part of an earlier one. */
function merge(first: Flush, second: Flush): Flush {
  const hardState = second.hardState ?? first.hardState
  const mustSync = first.mustSync || second.mustSync
  if (second.base) return { sequence: second.sequence, hardState, base: second.base, entries: second.entries, mustSync }
  const from = second.entries[0]?.index
  const kept = from === undefined ? first.entries : first.entries.filter((entry) => entry.index < from)
  return { sequence: second.sequence, hardState, base: first.base, entries: [...kept, ...second.entries], mustSync }
}
