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

/** The lock was acquired, and is not held any more. `cause` is the `HoldLostError`, with its reason. */
export class LostLockError extends LeaseholdError {
  static override readonly errorClass: string = 'LostLockError'
  constructor(message: string, cause: unknown) {
    super('lost', message, { cause, hint: 'stop the work; a guard refuses what is still on its way' })
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
  /** Milliseconds after which an owner that is gone loses the lock. At least 100. Default 10 000. */
  readonly lockTimeout?: number
  /** Milliseconds that `acquire` and `tryAcquire` wait. Default 10 000. */
  readonly acquireTimeout?: number
  /** 1: do not wait. `n`: wait `n − 1` times `retryInterval`, as the peer's attempts would take. Default: no limit. */
  readonly acquireAttemptsLimit?: number
  /** Nothing is tried again, the service queues: only counts with `acquireAttemptsLimit`. Default 10. */
  readonly retryInterval?: number
  /** 0: the lock is not renewed. Otherwise it is renewed at a third of `lockTimeout`, whatever is given. */
  readonly refreshInterval?: number
}

export interface LockOptions extends TimeoutOptions {
  /** `identifier` of a mutex or semaphore that holds the lock, with `acquiredExternally: true`. */
  readonly identifier?: string
  /** Takes the lock over that `identifier` names. */
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

/** `maxHold` gives a hold a session of its own, which `stopRefresh` can stop renewing. This one never comes to its end. */
const OWN_SESSION_MS = 2 ** 40

/** Locks of this process by the identifier that they had before they were acquired. Bounded by the garbage collector. */
const unacquired = new Map<string, WeakRef<Lock>>()
const forgotten = new FinalizationRegistry<string>((identifier) => unacquired.delete(identifier))

/** What {@link Mutex} and {@link Semaphore} have in common. */
export abstract class Lock {
  protected abstract readonly kind: 'mutex' | 'semaphore'
  readonly #locks: Locks
  readonly #key: string
  readonly #options: Required<TimeoutOptions>
  readonly #onLockLost: LockLostCallback | undefined
  readonly #firstIdentifier: string
  #external: string | undefined
  #hold: Hold | undefined

  constructor(client: Locks, key: string, options: LockOptions = {}) {
    this.#locks = locksOf(client, new.target.name)
    if (typeof key !== 'string' || key === '') throw new InvalidError('"key" must be a string, and not an empty one')
    this.#key = key
    for (const name of Object.keys(options)) {
      if (OPTIONS.includes(name)) continue
      throw new InvalidError(`${new.target.name} has no option ${JSON.stringify(name)}`, {
        hint: `it knows ${OPTIONS.join(', ')}`,
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
   * What another mutex needs to take this one over, also in another process: a secret, once it is acquired. Before that it
   * is only known in this process.
   */
  get identifier(): string {
    return this.#hold?.state === 'held' ? this.#hold.serialize() : this.#firstIdentifier
  }

  /** Whether the lock is held at this moment: compares the clocks, so that a loop that never waits sees its end too. */
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

  /** @throws TimeoutError: not acquired in time; UnavailableError: nothing is known; LostLockError: could not be taken over */
  async acquire(abortSignal?: AbortSignal): Promise<void> {
    const failure = await this.#take(abortSignal)
    if (failure) throw new TimeoutError(`Acquire ${this.kind} ${this.#key} timeout`, failure)
  }

  /** Like {@link acquire}, with false for *not acquired in time*. Waits for `acquireTimeout`, as the peer does. */
  async tryAcquire(abortSignal?: AbortSignal): Promise<boolean> {
    return (await this.#take(abortSignal)) === undefined
  }

  /** Has no effect when the lock is not held any more. */
  async release(): Promise<void> {
    if (this.#external !== undefined && !(await this.#stillThere(this.#external))) return
    const hold = this.#hold
    this.#hold = undefined
    await hold?.release()
  }

  /** The lock is not renewed any more, and ends `lockTimeout` after its last renewal at the latest. */
  stopRefresh(): void {
    const { hold } = this
    if (hold) leaseOf(hold).stopRenewing()
  }

  /** Mode of the lock: given to the client's acquire. */
  protected abstract readonly permits: number | undefined

  async #take(signal: AbortSignal | undefined): Promise<unknown> {
    if (this.#external !== undefined) {
      await this.#adopt(this.#external)
      return undefined
    }
    const { permits } = this
    try {
      const hold = await this.#locks.acquire(`${this.kind}:${this.#key}`, {
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
      throw new LostLockError(`Lost ${this.kind} for key ${this.#key}`, error)
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
      // Whoever has taken it over has it now: that is no accident.
      if (lost && lost.reason !== 'moved') this.#lost(lost)
    })
  }

  #lost(lost: HoldLostError): void {
    try {
      this.#onLockLost?.call(this, new LostLockError(`Lost ${this.kind} for key ${this.#key}: ${lost.message}`, lost))
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
  protected readonly kind = 'mutex'
  protected readonly permits = undefined
}

/** redis-semaphore's semaphore: at most `limit` at once. The lock's name is `semaphore:KEY`; all must give the same limit. */
export class Semaphore extends Lock {
  protected readonly kind = 'semaphore'
  protected readonly permits: number

  constructor(client: Locks, key: string, limit: number, options: LockOptions = {}) {
    super(client, key, options)
    this.permits = wholeMs(limit, '"limit"', { min: 1 })
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
    throw new InvalidError('acquiredExternally: true needs the identifier of the lock that is to be taken over')
  }
  if (identifier !== undefined && !acquiredExternally) {
    throw new InvalidError('an identifier of your own cannot be given', {
      hint: 'hand `mutex.identifier` on after the acquire, and give it there with acquiredExternally: true',
    })
  }
  return identifier
}

function waitOf({ acquireTimeout, acquireAttemptsLimit, retryInterval }: Required<TimeoutOptions>): string | number {
  const attemptsMs = (acquireAttemptsLimit - 1) * retryInterval
  const waitMs = Math.min(acquireTimeout, Number.isNaN(attemptsMs) ? acquireTimeout : attemptsMs)
  return Number.isFinite(waitMs) ? millis(waitMs) : waitMs
}
