import { type ClientPlatform, after } from '@leasehold/client'
import { AcquireTimeoutError, type LeaseholdError, UnavailableError } from '@leasehold/core'
import { ApproximateLock, type LockHome } from './approximate-lock.js'
import type { Settings } from './options.js'
import { GIVE, PASS, TAKE } from './scripts.js'

/** What a line needs of the client. */
export interface LineHome extends LockHome {
  run(script: string, name: string, args: readonly string[], what: string): Promise<unknown>
  subscribe(name: string, listener: () => void): Promise<() => void>
  value(): string
  channel(name: string): string
  /** Nobody holds or waits here any more. */
  empty(line: Line): void
}

/** One who wants to wait in this process. */
export interface Waiter {
  readonly settings: Settings
  readonly value: string
  readonly resolve: (lock: ApproximateLock) => void
  readonly reject: (error: LeaseholdError) => void
}

interface Place extends Waiter {
  /** Takes the end of the wait back. */
  readonly cancel: () => void
  /** An attempt has no answer: the lock may be ours in Redis, unknown to us. */
  uncertain: boolean
}

/** Locks that go from one to the next within this process before others are let in. */
const PASSES_MAX = 16
/** How long to step aside then. */
const ASIDE_MS = 5
/** Pauses between attempts that nothing else has ended: doubling, half of each random. */
const PAUSE_MIN_MS = 20
const PAUSE_MAX_MS = 1_000

/**
 * All of this process that want one lock: they stand in line here, and only the first of them asks Redis. It asks when the
 * lock is said to be free, when the other's lease ends, and in any case after a growing pause.
 */
export class Line {
  readonly name: string
  readonly #home: LineHome
  readonly #platform: ClientPlatform
  #waiting: Place[] = []
  #holder: ApproximateLock | undefined
  #passes = 0
  #contending = false
  #lastError: LeaseholdError | undefined
  #wake: () => void = () => {}
  #woken = false
  #unsubscribe: (() => void) | undefined

  constructor(name: string, home: LineHome) {
    this.name = name
    this.#home = home
    this.#platform = home.platform
  }

  /** Stands in line; returns what takes the waiter out again. */
  join(waiter: Waiter): (error: LeaseholdError) => void {
    const { waitMs } = waiter.settings
    const cancel = after(this.#platform, waitMs, () => this.#leave(place, this.#tooLate(waiter)), true)
    const place: Place = { ...waiter, cancel, uncertain: false }
    this.#waiting.push(place)
    void this.#contend()
    return (error) => this.#leave(place, error)
  }

  /** One attempt, without standing in line. Undefined: somebody has it, or waits for it here. */
  async attempt(settings: Settings, value: string): Promise<ApproximateLock | undefined> {
    if (this.#waiting.length > 0 || this.#holder) return undefined
    try {
      const got = await this.#take(settings, value)
      return typeof got === 'number' ? undefined : got
    } catch (error) {
      this.#forget(value)
      throw error
    } finally {
      this.#leaveIfEmpty()
    }
  }

  /** Gives a lock back, or on to the next one here. */
  async give(lock: ApproximateLock): Promise<boolean> {
    const { value } = lock.internals
    const next = this.#waiting[0]
    try {
      if (next && this.#passes < PASSES_MAX) return await this.#pass(value, next)
      this.#passes = 0
      const args = [value, this.#home.channel(this.name)]
      const answer = Number(await this.#home.run(GIVE, this.name, args, 'cannot release a lock'))
      const others = answer - 1 - (this.#unsubscribe ? 1 : 0)
      if (next && others > 0) await this.#pause(ASIDE_MS)
      return answer > 0
    } finally {
      if (this.#holder === lock) this.#holder = undefined
      void this.#contend()
      this.#leaveIfEmpty()
    }
  }

  /** A lock is over without having been given back. */
  lost(lock: ApproximateLock): void {
    if (this.#holder !== lock) return
    this.#holder = undefined
    void this.#contend()
    this.#leaveIfEmpty()
  }

  close(error: LeaseholdError): void {
    for (const place of [...this.#waiting]) this.#leave(place, error)
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  async #pass(value: string, next: Place): Promise<boolean> {
    this.#passes++
    const sentAt = this.#home.elapsed.now()
    const { settings } = next
    const args = [value, next.value, String(settings.ttlMs)]
    if ((await this.#home.run(PASS, this.name, args, 'cannot release a lock')) !== 1) return false
    await this.#granted(
      next,
      new ApproximateLock(this.#home, { ...settings, name: this.name, value: next.value, sentAt }),
    )
    return true
  }

  /** Asks Redis for the lock. A number: how long the other has it. */
  async #take(settings: Settings, value: string): Promise<ApproximateLock | number> {
    const sentAt = this.#home.elapsed.now()
    const answer = Number(await this.#home.run(TAKE, this.name, [value, String(settings.ttlMs)], 'cannot take a lock'))
    if (answer !== OURS) return answer
    const lock = new ApproximateLock(this.#home, { ...settings, name: this.name, value, sentAt })
    // The answer came so late that the lease is over: as good as taken by somebody else.
    if (lock.state !== 'held') return 0
    this.#holder = lock
    return lock
  }

  /** The lock is the waiter's, unless that one has gone meanwhile. */
  async #granted(place: Place, lock: ApproximateLock): Promise<void> {
    if (lock.state === 'held' && this.#waiting.includes(place)) {
      this.#remove(place)
      this.#holder = lock
      return place.resolve(lock)
    }
    // If this fails too it ends by its TTL.
    await lock.release().catch(() => {})
  }

  #remove(place: Place): void {
    this.#waiting = this.#waiting.filter((one) => one !== place)
    place.cancel()
  }

  #leave(place: Place, error: LeaseholdError): void {
    if (!this.#waiting.includes(place)) return
    this.#remove(place)
    if (place.uncertain) this.#forget(place.value)
    place.reject(error)
    this.#stir()
  }

  /** Makes sure that an attempt without an answer has no effect. If this fails too it ends by its TTL. */
  #forget(value: string): void {
    this.#home.run(GIVE, this.name, [value, this.#home.channel(this.name)], 'cannot release a lock').catch(() => {})
  }

  async #contend(): Promise<void> {
    if (this.#contending) return
    this.#contending = true
    let pauseMs = PAUSE_MIN_MS
    while (this.#waiting.length > 0 && !this.#holder) {
      await this.#ask(this.#waiting[0] as Place, pauseMs)
      pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2)
    }
    this.#contending = false
    this.#leaveIfEmpty()
  }

  /** One attempt of the first in line, and the pause after it. */
  async #ask(place: Place, pauseMs: number): Promise<void> {
    const pause = pauseMs / 2 + (pauseMs / 2) * this.#platform.random()
    this.#woken = false
    try {
      const got = await this.#take(place.settings, place.value)
      this.#lastError = undefined
      if (typeof got !== 'number') return await this.#granted(place, got)
      await this.#listen()
      await this.#pause(got < 0 ? pause : Math.min(got + 1, pause))
    } catch (error) {
      this.#lastError = error as LeaseholdError
      place.uncertain = true
      if (this.#lastError.retryable) await this.#pause(pause)
      else this.#leave(place, this.#lastError)
    }
  }

  /** From now on releases elsewhere are heard of. Without that the pauses have to do. */
  async #listen(): Promise<void> {
    if (this.#unsubscribe) return
    try {
      this.#unsubscribe = await this.#home.subscribe(this.name, () => this.#stir())
      // What was said before we listened was not heard: ask again at once.
      this.#woken = true
    } catch (error) {
      this.#lastError = error as LeaseholdError
    }
  }

  #stir(): void {
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
    this.#home.empty(this)
  }
}

/** What {@link TAKE} answers when the lock is ours. */
const OURS = -3
