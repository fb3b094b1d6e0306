import { StorageError } from '@leasehold/core'
import type { Clock, FolderState, Logger } from '../platform.js'
import { FolderLostError } from './storage-errors.js'

const CHECK_EVERY_MS = 1000
/** A device that fails for so long has failed. */
const FAILING_MS = 3000
/** A check that takes longer than this is reported. */
const HANGING_MS = 5000
/** What cannot be checked is warned of at most so often. */
const WARN_EVERY_MS = 60_000

export interface FolderWatchOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
  /** Checks the folder; `done` may never run. */
  readonly check: (done: (state: FolderState) => void) => void
  /** Runs what an answer brings about; what it throws stops the member. */
  readonly guard: (action: () => void) => void
}

/**
 * Watches that the data folder is still there and still this member's, with one check under way at most.
 *
 * A lost folder stops the member at once; one whose device fails for {@link FAILING_MS} stops it, too. A check that hangs, or
 * that fails for another reason, is reported: it says nothing about the folder.
 */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  #checkStartedMs: number | undefined
  #nextAt = 0
  #failingSince: number | undefined
  #failure = ''
  #isHangingReported = false
  #warned = false
  #warnAt = 0
  #waiting: (() => void)[] = []

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Why the folder cannot be relied on now; undefined: nothing is known against it. */
  get problem(): string | undefined {
    const { path, clock } = this.#options
    const took = this.#checkStartedMs === undefined ? 0 : clock.monotonicMs() - this.#checkStartedMs
    if (took >= HANGING_MS) return `the check of ${path} has not returned for ${Math.floor(took / 1000)} s`
    return this.#failingSince === undefined ? undefined : `${path} fails: ${this.#failure}`
  }

  tick(): void {
    const now = this.#options.clock.monotonicMs()
    if (this.#checkStartedMs === undefined) {
      if (now >= this.#nextAt) this.#begin(now)
    } else if (!this.#isHangingReported && now - this.#checkStartedMs >= HANGING_MS) {
      this.#isHangingReported = true
      this.#options.log.warn('the data folder does not answer: its file system hangs', { path: this.#options.path })
    }
  }

  /** Checks now; `done` runs after the answer, or never when there is none. Calls meanwhile share one check. */
  check(done: () => void): void {
    this.#waiting.push(done)
    if (this.#checkStartedMs === undefined) this.#begin(this.#options.clock.monotonicMs())
  }

  #begin(now: number): void {
    this.#checkStartedMs = now
    this.#nextAt = now + CHECK_EVERY_MS
    this.#options.check((state) => {
      const waiting = this.#waiting
      this.#checkStartedMs = undefined
      this.#waiting = []
      this.#options.guard(() => this.#note(state))
      for (const done of waiting) done()
    })
  }

  #note(state: FolderState): void {
    const { path, clock, log } = this.#options
    const now = clock.monotonicMs()
    if (this.#isHangingReported) log.info('the data folder answers again', { path })
    this.#isHangingReported = false
    switch (state.kind) {
      case 'own':
        if (this.#failingSince !== undefined || this.#warned) log.info('the data folder is all right again', { path })
        this.#failingSince = undefined
        this.#warned = false
        return
      case 'lost':
        log.error('the data folder is lost', { path, why: state.why, ...state.facts })
        throw new FolderLostError(state)
      case 'failing':
        this.#failing(state.why, now)
        return
      case 'unknown':
        if (this.#warned || now < this.#warnAt) return
        this.#warned = true
        this.#warnAt = now + WARN_EVERY_MS
        log.warn('the data folder cannot be checked', { path, why: state.why })
    }
  }

  #failing(why: string, now: number): void {
    const { path, log } = this.#options
    this.#failure = why
    if (this.#failingSince === undefined) {
      this.#failingSince = now
      log.warn('the disk of the data folder fails', { path, why })
    }
    if (now - this.#failingSince < FAILING_MS) return
    throw new StorageError(`the disk of ${path} has failed for ${FAILING_MS / 1000} s: ${why}`, {
      hint: 'the member has stopped; look after the disk or the mount, then start it again: everything acknowledged is kept',
    })
  }
}
