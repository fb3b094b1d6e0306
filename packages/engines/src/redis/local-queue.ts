import { type ClientPlatform, after } from '@leasehold/client'
import { AcquireTimeoutError, type LeaseholdError, UnavailableError } from '@leasehold/core'
import { ApproximateLock, type LockHost } from './approximate-lock.js'
import type { Settings } from './options.js'
import { RELEASE, HANDOVER, ACQUIRE } from './scripts.js'

/** What a queue needs from its client. */
export interface LocalQueueHost extends LockHost {
  run(script: string, name: string, args: readonly string[], what: string): Promise<unknown>
  subscribe(name: string, listener: () => void): Promise<() => void>
  value(): string
  channel(name: string): string
  /** The queue is empty, and this process does not hold the lock. */
  onEmpty(queue: LocalQueue): void
}

/** A caller that waits in this process. */
export interface Waiter {
  readonly settings: Settings
  readonly value: string
  readonly resolve: (lock: ApproximateLock) => void
  readonly reject: (error: LeaseholdError) => void
}

interface QueueEntry extends Waiter {
  /** Cancels the timeout of the wait. */
  readonly cancel: () => void
  /** An attempt had no answer: Redis may have granted the lock. */
  uncertain: boolean
}

/** Hand-overs in a row within this process before other processes get a chance. */
const HANDOVERS_MAX = 16
/** How long this process pauses then. */
const YIELD_MS = 5
/** Pauses between attempts unless an event ends them: doubling, half of each random. */
const PAUSE_MIN_MS = 20
const PAUSE_MAX_MS = 1_000

/**
 * The queue of this process for one lock: only its first waiter sends requests to Redis, when the
 * lock is reported free, when the lease of its holder ends, and in any case after a growing pause.
 */
export class LocalQueue {
  readonly name: string
  readonly #host: LocalQueueHost
  readonly #platform: ClientPlatform
  #waiting: QueueEntry[] = []
  #holder: ApproximateLock | undefined
  #handovers = 0
  #contending = false
  #lastError: LeaseholdError | undefined
  #wake: () => void = () => {}
  #woken = false
  #unsubscribe: (() => void) | undefined

  constructor(name: string, host: LocalQueueHost) {
    this.name = name
    this.#host = host
    this.#platform = host.platform
  }

  /** Adds a waiter; returns a function that removes and rejects it. */
  enqueue(waiter: Waiter): (error: LeaseholdError) => void {
    const { waitMs } = waiter.settings
    const cancel = after(this.#platform, waitMs, () => this.#leave(entry, this.#tooLate(waiter)), true)
    const entry: QueueEntry = { ...waiter, cancel, uncertain: false }
    this.#waiting.push(entry)
    void this.#contend()
    return (error) => this.#leave(entry, error)
  }

  /** One attempt without queueing. Undefined: the lock is held, or has waiters here. */
  async attempt(settings: Settings, value: string): Promise<ApproximateLock | undefined> {
    if (this.#waiting.length > 0 || this.#holder) return undefined
    try {
      const got = await this.#acquire(settings, value)
      return typeof got === 'number' ? undefined : got
    } catch (error) {
      this.#releaseUncertain(value)
      throw error
    } finally {
      this.#leaveIfEmpty()
    }
  }

  /** Releases a lock, or hands it over to the next waiter here. */
  async release(lock: ApproximateLock): Promise<boolean> {
    const { value } = lock.internals
    const next = this.#waiting[0]
    try {
      if (next && this.#handovers < HANDOVERS_MAX) return await this.#handOver(value, next)
      this.#handovers = 0
      const args = [value, this.#host.channel(this.name)]
      const answer = Number(await this.#host.run(RELEASE, this.name, args, 'cannot release a lock'))
      const others = answer - 1 - (this.#unsubscribe ? 1 : 0)
      if (next && others > 0) await this.#pause(YIELD_MS)
      return answer > 0
    } finally {
      if (this.#holder === lock) this.#holder = undefined
      void this.#contend()
      this.#leaveIfEmpty()
    }
  }

  /** A lock ended without a release. */
  lost(lock: ApproximateLock): void {
    if (this.#holder !== lock) return
    this.#holder = undefined
    void this.#contend()
    this.#leaveIfEmpty()
  }

  close(error: LeaseholdError): void {
    for (const entry of [...this.#waiting]) this.#leave(entry, error)
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  async #handOver(value: string, next: QueueEntry): Promise<boolean> {
    this.#handovers++
    const sentAt = this.#host.elapsed.now()
    const { settings } = next
    const args = [value, next.value, String(settings.ttlMs)]
    if ((await this.#host.run(HANDOVER, this.name, args, 'cannot release a lock')) !== 1) return false
    await this.#granted(
      next,
      new ApproximateLock(this.#host, { ...settings, name: this.name, value: next.value, sentAt }),
    )
    return true
  }

  /** One attempt at Redis. A number: how long another holder still has the lock, in milliseconds. */
  async #acquire(settings: Settings, value: string): Promise<ApproximateLock | number> {
    const sentAt = this.#host.elapsed.now()
    const answer = Number(
      await this.#host.run(ACQUIRE, this.name, [value, String(settings.ttlMs)], 'cannot take a lock'),
    )
    if (answer !== ACQUIRED) return answer
    const lock = new ApproximateLock(this.#host, { ...settings, name: this.name, value, sentAt })
    // The answer arrived after the end of the lease: as if another process had the lock.
    if (lock.state !== 'held') return 0
    this.#holder = lock
    return lock
  }

  /** Gives the lock to the waiter, or releases it if the waiter has left meanwhile. */
  async #granted(entry: QueueEntry, lock: ApproximateLock): Promise<void> {
    if (lock.state === 'held' && this.#waiting.includes(entry)) {
      this.#remove(entry)
      this.#holder = lock
      return entry.resolve(lock)
    }
    // If this fails too, it ends by its TTL.
    await lock.release().catch(() => {})
  }

  #remove(entry: QueueEntry): void {
    this.#waiting = this.#waiting.filter((one) => one !== entry)
    entry.cancel()
  }

  #leave(entry: QueueEntry, error: LeaseholdError): void {
    if (!this.#waiting.includes(entry)) return
    this.#remove(entry)
    if (entry.uncertain) this.#releaseUncertain(entry.value)
    entry.reject(error)
    this.#wakeUp()
  }

  /** Makes sure that an attempt without an answer has no effect. If this fails too, the lock ends by its TTL. */
  #releaseUncertain(value: string): void {
    this.#host.run(RELEASE, this.name, [value, this.#host.channel(this.name)], 'cannot release a lock').catch(() => {})
  }

  async #contend(): Promise<void> {
    if (this.#contending) return
    this.#contending = true
    let pauseMs = PAUSE_MIN_MS
    while (this.#waiting.length > 0 && !this.#holder) {
      await this.#attemptFirst(this.#waiting[0] as QueueEntry, pauseMs)
      pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2)
    }
    this.#contending = false
    this.#leaveIfEmpty()
  }

  /** One attempt of the first waiter, and the pause after it. */
  async #attemptFirst(entry: QueueEntry, pauseMs: number): Promise<void> {
    const pause = pauseMs / 2 + (pauseMs / 2) * this.#platform.random()
    this.#woken = false
    try {
      const got = await this.#acquire(entry.settings, entry.value)
      this.#lastError = undefined
      if (typeof got !== 'number') return await this.#granted(entry, got)
      await this.#subscribe()
      await this.#pause(got < 0 ? pause : Math.min(got + 1, pause))
    } catch (error) {
      this.#lastError = error as LeaseholdError
      entry.uncertain = true
      if (this.#lastError.retryable) await this.#pause(pause)
      else this.#leave(entry, this.#lastError)
    }
  }

  /** Subscribes to releases by other processes. If that fails, the pauses have to suffice. */
  async #subscribe(): Promise<void> {
    if (this.#unsubscribe) return
    try {
      this.#unsubscribe = await this.#host.subscribe(this.name, () => this.#wakeUp())
      // Earlier notifications were missed: try again at once.
      this.#woken = true
    } catch (error) {
      this.#lastError = error as LeaseholdError
    }
  }

  #wakeUp(): void {
    this.#woken = true
    this.#wake()
  }

  async #pause(ms: number): Promise<void> {
    if (this.#woken) {
      this.#woken = false
      return
    }
    await new Promise<void>((resolve) => {
      const cancel = after(this.#platform, ms, resolve, true)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
    this.#wake = () => {}
  }

  #tooLate(waiter: Waiter): LeaseholdError {
    const text = `${this.name} was not acquired within ${waiter.settings.waitMs} ms`
    if (!this.#lastError) return new AcquireTimeoutError(text)
    return new UnavailableError(`${text}: ${this.#lastError.message}`, { cause: this.#lastError })
  }

  #leaveIfEmpty(): void {
    if (this.#waiting.length > 0 || this.#holder || this.#contending) return
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#host.onEmpty(this)
  }
}

/** What {@link ACQUIRE} returns when the lock is ours. */
const ACQUIRED = -3
