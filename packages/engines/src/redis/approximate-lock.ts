import { type ClientPlatform, type Elapsed, after } from '@leasehold/client'
import { HoldLostError, type LostReason } from '@leasehold/core'

/** What a lock needs from its client. */
export interface LockHost {
  readonly platform: ClientPlatform
  readonly elapsed: Elapsed
  /** One attempt to extend the lease. False: the lock is lost. */
  extend(lock: ApproximateLock): Promise<boolean>
  /** Releases the lock. False: it was lost before. */
  release(lock: ApproximateLock): Promise<boolean>
  /** The lock is no longer held here. */
  ended(lock: ApproximateLock, how: 'released' | 'lost'): void
}

export interface LockTerms {
  readonly name: string
  readonly value: string
  readonly ttlMs: number
  readonly marginMs: number
  /** When the attempt that won was sent, in {@link Elapsed} time. */
  readonly sentAt: number
}

/** Concurrent attempts to extend. */
const ATTEMPTS_MAX = 4

declare const approximate: unique symbol

/**
 * A lock that saves work and protects nothing: Redis may lose it, so that two clients hold it. It has no token, and no
 * guard accepts it.
 *
 * - *held*: extended at a third of the TTL. *lost*: the deadline (send time of the last acknowledged attempt + TTL − margin)
 *   has passed, or Redis has lost it. *released*.
 */
export class ApproximateLock implements AsyncDisposable {
  declare readonly [approximate]: true
  readonly name: string
  /** Resolves when the lock has ended: with an error if it was lost. Never rejects. */
  readonly lost: Promise<HoldLostError | null>
  readonly #host: LockHost
  readonly #terms: LockTerms
  #controller: AbortController | undefined
  #ackedSentAt: number
  #state: 'held' | 'released' | 'lost' = 'held'
  #error: HoldLostError | undefined
  #attempts = 0
  #resolveLost: (error: HoldLostError | null) => void = () => {}
  #cancelTimer: () => void = () => {}
  #releasing: Promise<{ released: boolean }> | undefined

  constructor(host: LockHost, terms: LockTerms) {
    this.#host = host
    this.#terms = terms
    this.name = terms.name
    this.#ackedSentAt = terms.sentAt
    this.lost = new Promise((resolve) => {
      this.#resolveLost = resolve
    })
    this.#schedule()
  }

  /** Aborts with a `HoldLostError` when the lock is lost. */
  get signal(): AbortSignal {
    // Made on demand: most locks are released without it.
    if (!this.#controller) {
      this.#controller = this.#host.platform.abortController()
      if (this.#error) this.#controller.abort(this.#error)
    }
    return this.#controller.signal
  }

  get state(): 'held' | 'released' | 'lost' {
    this.#check()
    return this.#state
  }

  /** Milliseconds until the local deadline, now. */
  remaining(): number {
    return this.#check() ? this.#deadline - this.#host.elapsed.now() : 0
  }

  /** @throws HoldLostError when the lock is no longer held here */
  assertHeld(): void {
    if (this.#check()) return
    throw this.#error ?? new HoldLostError('closed', `${this.name} was released`)
  }

  /** `released: false`: it was lost before. */
  release(): Promise<{ released: boolean }> {
    this.#releasing ??= this.#release()
    return this.#releasing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It ends by its TTL.
    await this.release().catch(() => {})
  }

  /** For the client: its key and value in Redis. */
  get internals(): LockTerms {
    return this.#terms
  }

  get #deadline(): number {
    return this.#ackedSentAt + this.#terms.ttlMs - this.#terms.marginMs
  }

  async #release(): Promise<{ released: boolean }> {
    if (!this.#check()) return { released: false }
    // It stops being held before the release is sent.
    this.#end('released', undefined)
    return { released: await this.#host.release(this) }
  }

  #check(): boolean {
    if (this.#state !== 'held') return false
    if (this.#host.elapsed.now() < this.#deadline) return true
    this.#lose('deadline', `no extension was acknowledged in time (ttl ${this.#terms.ttlMs} ms)`)
    return false
  }

  #lose(reason: LostReason, why: string): void {
    const error = new HoldLostError(reason, `${this.name} is lost: ${why}`)
    this.#end('lost', error)
    this.#controller?.abort(error)
  }

  #end(state: 'released' | 'lost', error: HoldLostError | undefined): void {
    this.#state = state
    this.#error = error
    this.#cancelTimer()
    this.#host.ended(this, state)
    this.#resolveLost(error ?? null)
  }

  #schedule(): void {
    const { platform, elapsed } = this.#host
    const third = this.#terms.ttlMs / 3
    const now = elapsed.now()
    const next = this.#attempts > 0 ? now + third / 2 : this.#ackedSentAt + third
    const delayMs = Math.max(0, Math.min(next, this.#deadline) - now)
    this.#cancelTimer()
    this.#cancelTimer = after(platform, delayMs, () => {
      if (!this.#check()) return
      if (this.#attempts < ATTEMPTS_MAX) void this.#extend()
      this.#schedule()
    })
  }

  async #extend(): Promise<void> {
    const sentAt = this.#host.elapsed.now()
    this.#attempts++
    try {
      const extended = await this.#host.extend(this)
      if (!this.#check()) return
      if (!extended) return this.#lose('expired', 'Redis no longer has it')
      this.#ackedSentAt = Math.max(this.#ackedSentAt, sentAt)
    } catch {
      // The next attempt, or the deadline.
    } finally {
      this.#attempts--
      if (this.#state === 'held') this.#schedule()
    }
  }
}
