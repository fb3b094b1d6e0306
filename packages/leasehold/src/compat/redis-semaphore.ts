import type { Hold, Locks } from '@leasehold/client'
import {
  AcquireTimeoutError,
  BusyError,
  HoldLostError,
  InvalidError,
  LeaseholdError,
  type Token,
} from '@leasehold/core'
import { LEASE_MIN_MS, leaseOf, locksOf, millis, wholeMs } from './shared.js'

/** The lock was acquired, and is no longer held. `cause` is the `HoldLostError`, with its reason. */
export class LostLockError extends LeaseholdError {
  static override readonly errorClass: string = 'LostLockError'
  constructor(message: string, cause: unknown) {
    super('lost', message, { cause, hint: 'stop the work; a guard rejects writes that are still in flight' })
  }
}

/** The lock was never acquired. */
export class TimeoutError extends LeaseholdError {
  static override readonly errorClass: string = 'TimeoutError'
  constructor(message: string, cause?: unknown) {
    super('timeout', message, { cause })
  }
}

/** Called once when a lock is lost, with `this` being the mutex or semaphore. */
export type LockLostCallback = (this: Lock, error: LostLockError) => void

export interface TimeoutOptions {
  /** Milliseconds after which an owner that no longer renews loses the lock. At least 100. Default 10 000. */
  readonly lockTimeout?: number
  /** Milliseconds that `acquire` and `tryAcquire` wait. Default 10 000. */
  readonly acquireTimeout?: number
  /** 1: do not wait. `n`: wait `n − 1` times `retryInterval`, as long as redis-semaphore's attempts take. Default: no limit. */
  readonly acquireAttemptsLimit?: number
  /** Has an effect only with `acquireAttemptsLimit`: the service queues, so there are no retries. Default 10. */
  readonly retryInterval?: number
  /** 0: the lock is not renewed. Any other value: it is renewed at a third of `lockTimeout`. */
  readonly refreshInterval?: number
}

export interface LockOptions extends TimeoutOptions {
  /** `identifier` of a mutex or semaphore that holds the lock, with `acquiredExternally: true`. */
  readonly identifier?: string
  /** Takes over the lock that `identifier` names. */
  readonly acquiredExternally?: true
  readonly onLockLost?: LockLostCallback
}

export const defaultTimeoutOptions = {
  lockTimeout: 10_000,
  acquireTimeout: 10_000,
  acquireAttemptsLimit: Number.POSITIVE_INFINITY,
  retryInterval: 10,
} as const

const OPTIONS: readonly string[] = [
  ...Object.keys(defaultTimeoutOptions),
  'refreshInterval',
  'identifier',
  'acquiredExternally',
  'onLockLost',
]

/** A `maxHold` that never expires. It gives the hold a session of its own, which `stopRefresh` can stop renewing. */
const OWN_SESSION_MS = 2 ** 40

/** Locks of this process by the identifier that they have until they are acquired. Bounded by the garbage collector. */
const unacquired = new Map<string, WeakRef<Lock>>()
const forgotten = new FinalizationRegistry<string>((identifier) => unacquired.delete(identifier))

interface LockKind {
  readonly kind: 'mutex' | 'semaphore'
  readonly permits: number | undefined
}

/** The common base of {@link Mutex} and {@link Semaphore}. */
export abstract class Lock {
  readonly #kind: 'mutex' | 'semaphore'
  /** The `permits` option of the client's acquire. */
  readonly #permits: number | undefined
  readonly #locks: Locks
  readonly #key: string
  readonly #options: Required<TimeoutOptions>
  readonly #onLockLost: LockLostCallback | undefined
  readonly #firstIdentifier: string
  #external: string | undefined
  #hold: Hold | undefined

  /** @internal */
  constructor({ kind, permits }: LockKind, client: Locks, key: string, options: LockOptions) {
    this.#kind = kind
    this.#permits = permits
    this.#locks = locksOf(client, new.target.name)
    if (typeof key !== 'string' || key === '') throw new InvalidError('"key" must be a string, and not an empty one')
    this.#key = key
    for (const name of Object.keys(options)) {
      if (OPTIONS.includes(name)) continue
      throw new InvalidError(`${new.target.name} has no option ${JSON.stringify(name)}`, {
        hint: `it has ${OPTIONS.join(', ')}`,
      })
    }
    this.#options = timesOf(options)
    this.#onLockLost = options.onLockLost
    this.#external = externalOf(options)
    this.#firstIdentifier = options.identifier ?? globalThis.crypto.randomUUID()
    if (this.#external !== undefined) return
    unacquired.set(this.#firstIdentifier, new WeakRef(this))
    forgotten.register(this, this.#firstIdentifier)
  }

  /**
   * The identifier with which another mutex can take over this one, also in another process: a secret once the lock is acquired.
   * Before, it is known in this process only.
   */
  get identifier(): string {
    return this.#hold?.state === 'held' ? this.#hold.serialize() : this.#firstIdentifier
  }

  /** Whether the lock is held now. It reads the clock, so that a loop without an `await` sees the expiry, too. */
  get isAcquired(): boolean {
    return this.#hold?.state === 'held'
  }

  /** The hold, for a guard; undefined unless it is held. */
  get hold(): Hold | undefined {
    return this.isAcquired ? this.#hold : undefined
  }

  /** The fencing token, which redis-semaphore does not have; undefined unless it is held. */
  get token(): Token | undefined {
    return this.hold?.token
  }

  /** @throws TimeoutError: not acquired in time; UnavailableError: outcome unknown; LostLockError: takeover failed */
  async acquire(abortSignal?: AbortSignal): Promise<void> {
    const failure = await this.#take(abortSignal)
    if (failure) throw new TimeoutError(`Acquire ${this.#kind} ${this.#key} timeout`, failure)
  }

  /** Like {@link acquire}, but returns false if not acquired in time. Waits for `acquireTimeout`, as redis-semaphore does. */
  async tryAcquire(abortSignal?: AbortSignal): Promise<boolean> {
    return (await this.#take(abortSignal)) === undefined
  }

  /** Releases the lock. Has no effect if it is no longer held. */
  async release(): Promise<void> {
    if (this.#external !== undefined && !(await this.#stillThere(this.#external))) return
    const hold = this.#hold
    this.#hold = undefined
    await hold?.release()
  }

  /** Stops the renewals: the lock expires at most `lockTimeout` after the last one. */
  stopRefresh(): void {
    const { hold } = this
    if (hold) leaseOf(hold).stopRenewing()
  }

  async #take(signal: AbortSignal | undefined): Promise<unknown> {
    if (this.#external !== undefined) {
      await this.#adopt(this.#external)
      return undefined
    }
    const permits = this.#permits
    try {
      const hold = await this.#locks.acquire(`${this.#kind}:${this.#key}`, {
        ...this.#terms(),
        wait: waitOf(this.#options),
        portable: true,
        ...(permits === undefined ? {} : { permits }),
        ...(signal === undefined ? {} : { signal }),
      })
      this.#holds(hold)
      return undefined
    } catch (error) {
      if (error instanceof BusyError || error instanceof AcquireTimeoutError) return error
      throw error
    }
  }

  async #stillThere(identifier: string): Promise<boolean> {
    try {
      await this.#adopt(identifier)
      return true
    } catch (error) {
      if (error instanceof LostLockError) return false
      throw error
    }
  }

  async #adopt(identifier: string): Promise<void> {
    const text = unacquired.get(identifier)?.deref()?.identifier ?? identifier
    try {
      this.#holds(await this.#locks.adopt(text, this.#terms()))
      this.#external = undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError) || !['not-holder', 'invalid'].includes(error.code)) throw error
      throw new LostLockError(`Lost ${this.#kind} for key ${this.#key}`, error)
    }
  }

  #terms() {
    const { lockTimeout, refreshInterval } = this.#options
    const ttl = millis(lockTimeout)
    return refreshInterval === 0 ? { ttl, renew: false } : { ttl, maxHold: OWN_SESSION_MS }
  }

  #holds(hold: Hold): void {
    this.#hold = hold
    void hold.lost.then((lost) => {
      // A takeover is intended, and no loss.
      if (lost && lost.reason !== 'moved') this.#lost(lost)
    })
  }

  #lost(lost: HoldLostError): void {
    try {
      this.#onLockLost?.call(this, new LostLockError(`Lost ${this.#kind} for key ${this.#key}: ${lost.message}`, lost))
    } catch (error) {
      console.error('leasehold: onLockLost has thrown', error)
    }
  }
}

/**
 * redis-semaphore's mutex over a client of Leasehold. The lock's name is `mutex:KEY`.
 * @example
 * const mutex = new Mutex(createLocks('http://127.0.0.1:4100'), 'lockingResource')
 * await mutex.acquire()
 * try { … } finally { await mutex.release() }
 */
export class Mutex extends Lock {
  constructor(client: Locks, key: string, options: LockOptions = {}) {
    super({ kind: 'mutex', permits: undefined }, client, key, options)
  }
}

/** redis-semaphore's semaphore: at most `limit` holders. The lock's name is `semaphore:KEY`; all holders must give the same limit. */
export class Semaphore extends Lock {
  constructor(client: Locks, key: string, limit: number, options: LockOptions = {}) {
    super({ kind: 'semaphore', permits: wholeMs(limit, '"limit"', { min: 1 }) }, client, key, options)
  }

  /** The number of the permit, from 0; undefined unless it is held. */
  get slot(): number | undefined {
    return this.hold?.slot
  }
}

function timesOf(options: LockOptions): Required<TimeoutOptions> {
  const given = { ...defaultTimeoutOptions, ...options }
  const lockTimeout = wholeMs(given.lockTimeout, 'lockTimeout', { min: LEASE_MIN_MS })
  const { acquireAttemptsLimit } = given
  if (acquireAttemptsLimit !== Number.POSITIVE_INFINITY)
    wholeMs(acquireAttemptsLimit, 'acquireAttemptsLimit', { min: 1 })
  const { acquireTimeout } = given
  if (acquireTimeout !== Number.POSITIVE_INFINITY) wholeMs(acquireTimeout, 'acquireTimeout')
  const refreshInterval = options.refreshInterval ?? Math.round(lockTimeout * 0.8)
  if (typeof refreshInterval !== 'number' || Number.isNaN(refreshInterval)) {
    throw new InvalidError(`refreshInterval is a number of milliseconds, not ${String(refreshInterval)}`)
  }
  return {
    lockTimeout,
    acquireTimeout,
    acquireAttemptsLimit,
    retryInterval: wholeMs(given.retryInterval, 'retryInterval'),
    refreshInterval,
  }
}

function externalOf({ identifier, acquiredExternally }: LockOptions): string | undefined {
  if (identifier !== undefined && (typeof identifier !== 'string' || identifier === '')) {
    throw new InvalidError('identifier must be not empty random string')
  }
  if (acquiredExternally && identifier === undefined) {
    throw new InvalidError('acquiredExternally: true needs the identifier of the lock to take over')
  }
  if (identifier !== undefined && !acquiredExternally) {
    throw new InvalidError('an identifier of your own cannot be given', {
      hint: 'pass `mutex.identifier` on after the acquire, and use it with acquiredExternally: true',
    })
  }
  return identifier
}

function waitOf({ acquireTimeout, acquireAttemptsLimit, retryInterval }: Required<TimeoutOptions>): string | number {
  const attemptsMs = (acquireAttemptsLimit - 1) * retryInterval
  const waitMs = Math.min(acquireTimeout, Number.isNaN(attemptsMs) ? acquireTimeout : attemptsMs)
  return Number.isFinite(waitMs) ? millis(waitMs) : waitMs
}
