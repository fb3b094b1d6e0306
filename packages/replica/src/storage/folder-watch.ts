import { StorageError } from '@leasehold/core'
import type { Clock, FolderState, Logger } from '../platform.js'
import { FolderLostError } from './storage-errors.js'

const CHECK_EVERY_MS = 1000
/** A device that fails for this long stops the member. */
const FAILING_MS = 3000
/** A check that takes longer than this is reported. */
const HANGING_MS = 5000
/** Least interval between warnings about failed checks. */
const WARN_EVERY_MS = 60_000

export interface FolderWatchOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
  /** Checks the folder; `done` may never run. */
  readonly check: (done: (state: FolderState) => void) => void
  /** Runs the handling of a result. An error stops the member. */
  readonly guard: (action: () => void) => void
}

/**
 * Checks periodically that the data folder still exists and still belongs to this member, with at most one check at a time.
 *
 * A lost folder stops the member at once; a device that fails for {@link FAILING_MS} stops it too. A check that hangs or fails
 * for another reason is only logged: it proves nothing about the folder.
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

  /** The current problem of the folder; undefined when none is known. */
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

  /** Checks now. `done` runs after the result, or never if the check hangs. Concurrent calls share one check. */
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
        if (this.#failingSince !== undefined || this.#warned) log.info('the data folder is usable again', { path })
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
      hint: 'the member has stopped; repair the disk or the mount, then start it again: everything acknowledged is kept',
    })
  }
}
