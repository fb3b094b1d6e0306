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

/** redlock's settings. How long to wait is `retryCount × retryDelay`; nothing is tried again meanwhile: the service queues. */
export interface Settings {
  /** Has no effect: the margin of the client (a tenth of the duration) takes its place. */
  readonly driftFactor: number
  /** −1: wait without end. 0: do not wait. */
  readonly retryCount: number
  readonly retryDelay: number
  /** Has no effect: waiters are served in their order. */
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

/** A lock that was acquired by hand: it is not renewed, and ends with its duration unless it is extended. */
export class Lock {
  readonly redlock: Redlock
  readonly resources: string[]
  readonly attempts = [statsOf()]
  /** @internal */
  held: Hold
  /** @internal Length of the session's lease. */
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

  /** The hold behind this lock, for a guard. Another one after an extension beyond the first duration. */
  get hold(): Hold {
    return this.held
  }

  /** The fencing token: what redlock does not have. */
  get token(): Token {
    return this.held.token
  }

  /** Names this grant; not a secret, and not enough to release it. */
  get value(): string {
    return this.held.id.toString()
  }

  /** When the lock ends on this machine's calendar, in milliseconds; 0 when it has ended. */
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
   * @param clients a client of Leasehold, alone or as the only one of a list: one service takes the place of all Redis nodes
   * @throws InvalidError
   */
  constructor(clients: Locks | Iterable<Locks>, settings: Partial<Settings> = {}, scripts?: unknown) {
    super()
    if (scripts !== undefined) throw new InvalidError('there are no scripts here: leave the third argument out')
    const list = Symbol.iterator in Object(clients) ? [...new Set(clients as Iterable<unknown>)] : [clients]
    if (list.length !== 1) {
      throw new InvalidError(`Redlock takes one client of leasehold, not ${list.length}`, {
        hint: 'one service (or cluster) takes the place of all independent Redis nodes',
      })
    }
    this.#locks = locksOf(list[0], 'Redlock')
    this.settings = settingsOf(settings, DEFAULTS)
    // As in redlock: without a listener an error event is nobody's business, not an exception.
    this.on('error', () => {})
  }

  /** Closes the client. */
  async quit(): Promise<void> {
    await this.#locks.close()
  }

  /**
   * Takes all resources or none. The lock lasts for `duration` ms from its grant, and is not renewed.
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

  /** `released: false`: the lock had ended before. redlock rejects then; here the work that is done stays done. */
  async release(lock: Lock): Promise<ExecutionResult & { released: boolean }> {
    try {
      const { released } = await lock.hold.release()
      return { attempts: [statsOf()], released }
    } catch (error) {
      throw this.#failed(error, lock.resources)
    }
  }

  /**
   * The lock lasts for `duration` ms from now. Returns the same lock, changed. Beyond the first duration it is handed over
   * to a longer lease, under a new and greater token.
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
      if (durationMs > lock.leaseMs) await this.#moved(lock, durationMs)
      else await renewed(lock, durationMs)
      return lock
    } catch (error) {
      throw this.#failed(error, lock.resources)
    }
  }

  async #moved(lock: Lock, durationMs: number): Promise<void> {
    lock.held = await this.#locks.adopt(lock.hold.serialize(), { ttl: millis(durationMs), renew: false })
    lock.leaseMs = durationMs
  }

  /**
   * Runs `routine` under the resources, with renewals until it has settled. `signal` aborts when they are lost, with the
   * error in `signal.error` (and `signal.reason`); the hold comes as a second argument, for a guard.
   * Rejects with the routine's own error; with an ExecutionError (`lost`) if it returned and the lock was lost meanwhile.
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
      // What the routine has thrown is the caller's. A loss is told by the client, with the value of the routine.
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
    const told = locked
      ? new ResourceLockedError(`The operation was applied to: 0 of the ${names.length} requested resources.`, {
          cause: error,
        })
      : error
    this.emit('error', told)
    this.emit('clientError', told)
    return executionError(error)
  }
}

export default Redlock

async function renewed(lock: Lock, durationMs: number): Promise<void> {
  const { hold } = lock
  if (!(await leaseOf(hold).renewNow())) {
    if (hold.state !== 'held') throw lostError(await hold.lost, 'Cannot extend an already-expired lock.')
    throw new ExecutionError('unreachable', 'the extension was not acknowledged; the lock keeps its old expiration', {
      hint: 'extend it again, or stop before it expires',
    })
  }
  limit(hold, durationMs, lock.leaseMs)
}

/** A duration shorter than the lease is kept on this side: the lock ends here in time, and at the service with its lease. */
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
        hint: `it knows ${SETTINGS.join(', ')}`,
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
  throw new InvalidError('only the promise interface of redlock 4 is here: leave the callback out')
}

async function named<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error
    throw new LockError(error.code, error.message, { cause: error.cause, hint: error.hint })
  }
}
