import { EventEmitter } from 'node:events'
import type { Hold, Locks } from '@leasehold/client'
import { HoldLostError, InvalidError, type Token } from '@leasehold/core'
import {
  type ExecutionResult,
  ExecutionError,
  executionError,
  LockError,
  lostError,
  ResourceLockedError,
  statsOf,
} from './redlock-errors.js'
import { LEASE_MIN_MS, leaseOf, locksOf, millis, wholeMs } from './shared.js'

export {
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  LockError,
  ResourceLockedError,
} from './redlock-errors.js'

/** redlock's settings. An acquire waits for `retryCount × retryDelay` in the queue of the service, without retries. */
export interface Settings {
  /** Has no effect: the client has a safety margin of a tenth of the duration. */
  readonly driftFactor: number
  /** −1: wait without a limit. 0: do not wait. */
  readonly retryCount: number
  readonly retryDelay: number
  /** Has no effect: waiters are served first come, first served. */
  readonly retryJitter: number
  /** Has no effect: `using` renews at a third of the duration. */
  readonly automaticExtensionThreshold: number
}

export type RedlockAbortSignal = AbortSignal & { error?: Error }

type Routine<T> = (signal: RedlockAbortSignal, hold: Hold) => Promise<T>

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
}

/** A lock from `acquire`: it is not renewed, and expires after its duration unless it is extended. */
export class Lock {
  readonly redlock: Redlock
  readonly resources: string[]
  readonly attempts = [statsOf()]
  /** @internal */
  held: Hold
  /** @internal Length of the session's lease, in ms. */
  leaseMs: number

  /** @internal */
  constructor(redlock: Redlock, resources: string[], held: Hold, leaseMs: number) {
    this.redlock = redlock
    this.resources = resources
    this.held = held
    this.leaseMs = leaseMs
  }

  /** redlock 4's name for {@link resources}. */
  get resource(): string[] {
    return this.resources
  }

  /** The hold behind this lock, for a guard. Replaced by an extension beyond the first duration. */
  get hold(): Hold {
    return this.held
  }

  /** The fencing token, which redlock does not have. */
  get token(): Token {
    return this.held.token
  }

  /** The id of this grant. It is no secret, and cannot release the lock. */
  get value(): string {
    return this.held.id.toString()
  }

  /** When the lock expires by the wall clock of this machine, in ms; 0 once it has ended. */
  get expiration(): number {
    const remainingMs = this.held.remaining()
    return remainingMs === 0 ? 0 : Date.now() + remainingMs
  }

  release(): Promise<ExecutionResult & { released: boolean }> {
    return this.redlock.release(this)
  }

  /** redlock 4's {@link release}. */
  unlock(callback?: unknown): Promise<ExecutionResult & { released: boolean }> {
    return this.redlock.unlock(this, callback)
  }

  extend(duration: number, callback?: unknown): Promise<Lock> {
    refuseCallback(callback)
    return this.redlock.extend(this, duration)
  }
}

/**
 * The interface of redlock 5 (`using`, `acquire`, `extend`, `release`) and the promise interface of redlock 4.2 (`lock`,
 * `unlock`, `extend`) over a client of Leasehold.
 *
 * @example
 * const redlock = new Redlock([createLocks('http://127.0.0.1:4100')], { retryCount: 10 })
 * await redlock.using(['a', 'b'], 5000, async (signal, hold) => { … })
 */
export class Redlock extends EventEmitter {
  static readonly Lock = Lock
  static readonly LockError = LockError
  readonly settings: Settings
  readonly #locks: Locks

  /**
   * @param clients a client of Leasehold, alone or as the only item of a list: one service replaces all Redis nodes
   * @throws InvalidError
   */
  constructor(clients: Locks | Iterable<Locks>, settings: Partial<Settings> = {}, scripts?: unknown) {
    super()
    if (scripts !== undefined) throw new InvalidError('there are no scripts: leave the third argument out')
    const list = Symbol.iterator in Object(clients) ? [...new Set(clients as Iterable<unknown>)] : [clients]
    if (list.length !== 1) {
      throw new InvalidError(`Redlock takes one client of leasehold, not ${list.length}`, {
        hint: 'one service (or cluster) replaces all independent Redis nodes',
      })
    }
    this.#locks = locksOf(list[0], 'Redlock')
    this.settings = settingsOf(settings, DEFAULTS)
    // As in redlock: an error event without a listener is ignored, and does not throw.
    this.on('error', () => {})
  }

  /** Closes the client. */
  async quit(): Promise<void> {
    await this.#locks.close()
  }

  /**
   * Acquires all resources or none. The lock lasts for `duration` ms from its grant, and is not renewed.
   * @throws ExecutionError (`busy`, `timeout`, `unreachable`, …), InvalidError
   */
  async acquire(resources: string | string[], duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
    const names = namesOf(resources)
    const durationMs = wholeMs(duration, 'Duration', { min: 1 })
    const leaseMs = Math.max(durationMs, LEASE_MIN_MS)
    const wait = waitOf(settingsOf(settings, this.settings))
    try {
      const hold = await this.#locks.acquire(names, { ttl: millis(leaseMs), wait, renew: false, portable: true })
      limit(hold, durationMs, leaseMs)
      return new Lock(this, names, hold, leaseMs)
    } catch (error) {
      throw this.#failed(error, names)
    }
  }

  /** Releases the lock. `released: false`: it had ended before. redlock rejects in this case. */
  async release(lock: Lock): Promise<ExecutionResult & { released: boolean }> {
    try {
      const { released } = await lock.hold.release()
      return { attempts: [statsOf()], released }
    } catch (error) {
      throw this.#failed(error, lock.resources)
    }
  }

  /**
   * Extends the lock to `duration` ms from now. Returns the same lock, changed. Beyond the first duration, it moves to a longer
   * lease, under a new and greater token.
   * @throws ExecutionError: `lost` if it had ended; `unreachable` if it could not be extended and is still held
   */
  async extend(lock: Lock, duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
    settingsOf(settings, this.settings)
    const durationMs = wholeMs(duration, 'Duration', { min: 1 })
    if (lock.hold.state !== 'held') {
      const lost = lock.hold.state === 'lost' ? await lock.hold.lost : null
      throw lostError(lost, 'Cannot extend an already-expired lock.')
    }
    try {
      if (durationMs > lock.leaseMs) await this.#moveToLongerLease(lock, durationMs)
      else await renew(lock, durationMs)
      return lock
    } catch (error) {
      throw this.#failed(error, lock.resources)
    }
  }

  async #moveToLongerLease(lock: Lock, durationMs: number): Promise<void> {
    lock.held = await this.#locks.adopt(lock.hold.serialize(), { ttl: millis(durationMs), renew: false })
    lock.leaseMs = durationMs
  }

  /**
   * Runs `routine` while it holds the resources, and renews until the routine has settled. `signal` aborts when the lock is lost,
   * with the error in `signal.error` (and `signal.reason`); the second argument is the hold, for a guard.
   * Rejects with the routine's own error, or with an ExecutionError (`lost`) if the routine returned after the lock was lost.
   */
  using<T>(resources: string[], duration: number, settings: Partial<Settings>, routine?: Routine<T>): Promise<T>
  using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    given?: Routine<T>,
  ): Promise<T> {
    const [settings, routine] =
      typeof settingsOrRoutine === 'function' ? [{}, settingsOrRoutine] : [settingsOrRoutine, given]
    if (typeof routine !== 'function') throw new InvalidError('INVARIANT: routine is not a function.')
    const names = namesOf(resources)
    const ttl = millis(wholeMs(duration, 'Duration', { min: LEASE_MIN_MS }))
    const wait = waitOf(settingsOf(settings, this.settings))
    let entered = false
    try {
      return await this.#locks.request(names, { ttl, wait }, async (hold) => {
        entered = true
        return routine(signalOf(hold), hold)
      })
    } catch (error) {
      // An error of the routine passes unchanged. The client reports a loss after the routine has returned.
      if (entered && !(error instanceof HoldLostError)) throw error
      throw this.#failed(error, names)
    }
  }

  /** redlock 4's {@link acquire}. @throws LockError */
  async lock(resource: string | string[], ttl: number, callback?: unknown): Promise<Lock> {
    refuseCallback(callback)
    return named(this.acquire(resource, ttl))
  }

  /** redlock 4's {@link release}. @throws LockError */
  async unlock(lock: Lock, callback?: unknown): Promise<ExecutionResult & { released: boolean }> {
    refuseCallback(callback)
    return named(this.release(lock))
  }

  #failed(error: unknown, names: readonly string[]): unknown {
    const code = (error as { code?: unknown }).code
    const locked = code === 'busy' || code === 'timeout'
    const reported = locked
      ? new ResourceLockedError(`The operation was applied to: 0 of the ${names.length} requested resources.`, {
          cause: error,
        })
      : error
    this.emit('error', reported)
    this.emit('clientError', reported)
    return executionError(error)
  }
}

export default Redlock

async function renew(lock: Lock, durationMs: number): Promise<void> {
  const { hold } = lock
  if (!(await leaseOf(hold).renewNow())) {
    if (hold.state !== 'held') throw lostError(await hold.lost, 'Cannot extend an already-expired lock.')
    throw new ExecutionError('unreachable', 'the extension was not acknowledged; the lock keeps its old expiration', {
      hint: 'extend it again, or stop before it expires',
    })
  }
  limit(hold, durationMs, lock.leaseMs)
}

/** Enforces a duration shorter than the lease here: the lock ends here in time, and at the service with its lease. */
function limit(hold: Hold, durationMs: number, leaseMs: number): void {
  leaseOf(hold).limit(durationMs < leaseMs ? durationMs : Number.POSITIVE_INFINITY)
}

function signalOf(hold: Hold): RedlockAbortSignal {
  const { signal } = hold
  Object.defineProperty(signal, 'error', {
    get: () => (signal.aborted ? executionError(signal.reason) : undefined),
    configurable: true,
  })
  return signal as RedlockAbortSignal
}

function namesOf(resources: unknown): string[] {
  const list: unknown[] = Array.isArray(resources) ? resources : [resources]
  return [...new Set(list as string[])]
}

const SETTINGS = Object.keys(DEFAULTS)

function settingsOf(given: Partial<Settings>, defaults: Settings): Settings {
  for (const [name, value] of Object.entries(given)) {
    if (!SETTINGS.includes(name)) {
      throw new InvalidError(`Redlock has no setting ${JSON.stringify(name)}`, {
        hint: `it has ${SETTINGS.join(', ')}`,
      })
    }
    if (typeof value !== 'number' || Number.isNaN(value))
      throw new InvalidError(`${name} is a number, not ${String(value)}`)
  }
  return { ...defaults, ...given }
}

function waitOf({ retryCount, retryDelay }: Settings): string | number {
  const waitMs = retryCount === -1 ? Number.POSITIVE_INFINITY : retryCount * retryDelay
  return Number.isFinite(waitMs) ? millis(waitMs) : waitMs
}

function refuseCallback(callback: unknown): void {
  if (callback === undefined) return
  throw new InvalidError('callbacks of redlock 4 are not supported: use the promise')
}

async function named<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error
    throw new LockError(error.code, error.message, { cause: error.cause, hint: error.hint })
  }
}
