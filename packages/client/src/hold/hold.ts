import { HoldLostError, InvalidError, type Mode, NotHolderError, type Token } from '@leasehold/core'
import { Emitter } from '../async/emitter.js'
import type { LostEnd } from '../end-reasons.js'
import type { EngineGrant } from '../engine.js'
import type { ClientPlatform } from '../platform.js'
import { settled } from '../async/bounded-wait.js'
import { keepAlive } from '../async/timers.js'
import { serializeHold } from './serialized-hold.js'

export type HoldState = 'held' | 'released' | 'lost'

/** A warning for the holder while it can still react. */
export type HoldWarning =
  /** A renewal is late. If none arrives within `remainingMs`, the hold is lost. */
  | {
      readonly kind: 'renewal-overdue'
      readonly message: string
      readonly remainingMs: number
      readonly cause?: unknown
    }
  /** The work is done, but the service has not confirmed the release: the lock passes on at the latest after the TTL. */
  | { readonly kind: 'release-failed'; readonly message: string; readonly cause?: unknown }

export interface HeldLock {
  readonly name: string
  readonly mode: Mode
  readonly token: Token
  readonly slot?: number
}

/** What a hold needs from the session that it lives in. */
export interface HoldHost {
  readonly platform: ClientPlatform
  /** Length of the client's namespace prefix, which users do not see. */
  readonly prefixLength: number
  fullName(name: string): string
  /** Compares the clocks with the deadline; loses all holds of the session when it has passed. */
  check(): boolean
  /** Why the session ended, if it has. */
  readonly ended: LostEnd | undefined
  /** Milliseconds until the local deadline. */
  remaining(): number
  /** The same for outside observers, without a sample of the clocks: it changes nothing for the client. */
  peek(): number
  /** Milliseconds since the last acknowledged renewal (or the opening) was sent. */
  unconfirmedMs(): number
  /** Renews the session now. False: the renewal was not acknowledged. */
  renewNow(): Promise<boolean>
  /** The session ends `limitMs` from now at the latest. For sessions of one hold only. */
  limit(limitMs: number): void
  /** The session ends at the deadline that it has now. For sessions of one hold only. */
  stopRenewing(): void
  /** Releases the hold at the service. Called once per hold, after it has stopped being held. */
  release(hold: Hold): Promise<Released>
  /** The hold has ended, lost or released. */
  forget(hold: Hold, lost: HoldLostError | undefined): void
  warn(hold: Hold, warning: HoldWarning): void
}

/** What a release resolves with. */
export interface Released {
  /** False: the hold had ended already. */
  readonly released: boolean
}

/** @internal What the other packages may do with a hold; see {@link trackEffect} and {@link fenceOf}. */
export const holdInternals: unique symbol = Symbol.for('leasehold.hold')

export interface HoldInternals {
  track(effect: Promise<unknown>): void
  /** Full id and full name of one of the hold's locks. */
  fence(name: string | undefined): { hold: bigint; lock: string }
  /** The session that the hold lives in, for fenced writes. */
  readonly host: HoldHost
}

/**
 * One grant of one or more locks. Single-use: `held` until it is released or lost, and never again afterwards.
 *
 * - *held → released*: `release()`, `await using`, or the end of `request`.
 * - *held → lost*: the service reports its end, or the local deadline passes: send time of the last acknowledged
 *   renewal + TTL − margin, on this machine's clocks. Checked synchronously by every member below.
 *
 * @example
 * await using hold = await locks.acquire('billing/invoice-42')
 * await guard.with(hold, async (tx) => { … })
 */
export class Hold implements AsyncDisposable {
  /** Names this grant at the service. Never reused. Not a secret. */
  readonly id: bigint
  /** The locks of this hold, in the order of the acquire. */
  readonly locks: readonly HeldLock[]
  readonly persistent: boolean
  readonly #host: HoldHost
  readonly #secret: string | undefined
  /** Made on demand: most holds have neither listeners nor effects. */
  #warnings: Emitter<HoldWarning> | undefined
  #effects: Set<Promise<unknown>> | undefined
  #state: HoldState = 'held'
  #lost: HoldLostError | undefined
  #gone: HoldLostError | undefined
  #controller: AbortController | undefined
  #over: { promise: Promise<HoldLostError | null>; resolve: (error: HoldLostError | null) => void } | undefined
  #releasing: Promise<Released> | undefined

  /** @internal Holds come from `acquire`, `request` and `adopt`. */
  constructor(host: HoldHost, grant: EngineGrant, persistent: boolean) {
    this.#host = host
    this.id = grant.id
    const { prefixLength } = host
    this.locks =
      prefixLength === 0 ? grant.locks : grant.locks.map((lock) => ({ ...lock, name: lock.name.slice(prefixLength) }))
    this.persistent = persistent
    this.#secret = grant.secret
  }

  /** The hold's state, now: the deadline is compared with the clocks at this call. */
  get state(): HoldState {
    if (this.#state === 'held' && !this.persistent && !this.#host.check()) {
      // Called by a listener during the end of the session: this hold is lost now.
      const ended = this.#host.ended
      if (ended) this.lose(ended)
    }
    return this.#state
  }

  /** The fencing token of the first exclusive lock (of the first lock, if none is exclusive). */
  get token(): Token {
    return (this.locks.find((lock) => lock.mode === 'exclusive') ?? this.#first).token
  }

  /** The fencing token of one of the hold's locks. @throws InvalidError if the hold does not have that lock */
  tokenOf(name: string): Token {
    return this.#lock(name).token
  }

  /** The permit's number (0 … permits − 1) of one of the hold's locks; undefined if that is no semaphore. */
  slotOf(name: string): number | undefined {
    return this.#lock(name).slot
  }

  get name(): string {
    return this.#first.name
  }

  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name)
  }

  get mode(): Mode {
    return this.#first.mode
  }

  get slot(): number | undefined {
    return this.locks.find((lock) => lock.slot !== undefined)?.slot
  }

  /** Aborts with a `HoldLostError` as reason when the hold is lost; not when it is released. */
  get signal(): AbortSignal {
    const state = this.state
    if (!this.#controller) {
      this.#controller = this.#host.platform.abortController()
      if (state === 'lost') this.#controller.abort(this.#lost)
    }
    return this.#controller.signal
  }

  /** When the hold stops being held unless it is renewed, by this machine's wall clock. For logs only. */
  get deadline(): Date {
    const { platform } = this.#host
    const remaining = this.remaining()
    return platform.date(remaining === Number.POSITIVE_INFINITY ? DATE_MAX_MS : platform.wallMs() + remaining)
  }

  /** Milliseconds until the hold stops being held unless it is renewed. 0 when it is not held. */
  remaining(): number {
    if (this.state !== 'held') return 0
    return this.persistent ? Number.POSITIVE_INFINITY : Math.max(0, this.#host.remaining())
  }

  /**
   * Throws unless the hold is held at this moment. A check is not a guard: the process may stop right after it.
   * @throws HoldLostError, NotHolderError (released)
   */
  assertHeld(): void {
    const state = this.state
    if (state === 'held') return
    if (this.#lost) throw this.#lost
    throw new NotHolderError(`the hold of ${quoted(this.names)} is ${state}: it was released by its owner`)
  }

  /**
   * Resolves when the hold has ended: with the error if it was lost, with null if it was released. Never rejects. From its first use
   * to the end of the hold it keeps the process alive.
   */
  get lost(): Promise<HoldLostError | null> {
    const state = this.state
    if (!this.#over) {
      let resolve: (error: HoldLostError | null) => void = () => {}
      const promise = new Promise<HoldLostError | null>((done) => {
        resolve = done
      })
      if (state !== 'held') {
        this.#over = { promise, resolve }
        resolve(this.#lost ?? null)
        return promise
      }
      const waitEnds = keepAlive(this.#host.platform)
      const end = (error: HoldLostError | null) => {
        waitEnds()
        resolve(error)
      }
      this.#over = { promise, resolve: end }
    }
    return this.#over.promise
  }

  /** Listens to warnings before a loss. Returns a function that removes the listener. */
  on(event: 'warning', listener: (warning: HoldWarning) => void): () => void {
    if (event !== 'warning')
      throw new InvalidError(`a hold has no event ${String(event)}`, { hint: "it has 'warning'" })
    this.#warnings ??= new Emitter(this.#host.platform)
    return this.#warnings.add(listener)
  }

  /**
   * Releases the locks, after guarded effects in flight under this hold have settled. The hold stops being held before
   * the release is sent. Of a lost hold: resolves `{ released: false }` at once. Every call returns the first outcome.
   * @throws UnavailableError, UnknownOutcomeError: the service has not confirmed; the lock passes on at the end of the TTL
   */
  release(): Promise<Released> {
    if (!this.#releasing) {
      if (this.state !== 'held') this.#releasing = Promise.resolve(NOT_RELEASED)
      else if (this.#effects !== undefined) this.#releasing = this.#releaseAfter(this.#effects)
      else this.#releasing = this.#release()
    }
    return this.#releasing
  }

  #release(): Promise<Released> {
    this.#end('released')
    return this.#host.release(this)
  }

  async #releaseAfter(effects: ReadonlySet<Promise<unknown>>): Promise<Released> {
    while (effects.size > 0 && this.state === 'held') {
      await settled(this.#host.platform, Promise.allSettled(effects), this.remaining())
    }
    return this.state === 'held' ? this.#release() : NOT_RELEASED
  }

  /** Releases; never rejects: a failure is a `warning`. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release()
    } catch (error) {
      this.warnReleaseFailed(error)
    }
  }

  /**
   * A bearer secret with which another process can adopt the hold: `locks.adopt(text)`. Treat it like a password.
   * @throws InvalidError unless the hold is portable or persistent
   */
  serialize(): string {
    this.assertHeld()
    if (this.#secret === undefined) {
      throw new InvalidError('only portable and persistent holds can be handed over', {
        hint: 'acquire with { portable: true }',
      })
    }
    return serializeHold({ id: this.id, secret: this.#secret, persistent: this.persistent })
  }

  /** For logs: the token as text, never the secret. */
  toJSON(): Record<string, unknown> {
    return {
      id: this.id.toString(),
      name: this.name,
      names: this.names,
      mode: this.mode,
      token: this.token.toString(),
      ...(this.slot === undefined ? {} : { slot: this.slot }),
      state: this.state,
      deadline: this.deadline.toJSON(),
    }
  }

  /** @internal */
  get secret(): string | undefined {
    return this.#secret
  }

  /** @internal */
  get [holdInternals](): HoldInternals {
    return {
      host: this.#host,
      track: (effect) => this.#track(effect),
      fence: (name) => ({ hold: this.id, lock: this.#host.fullName(name ?? this.#exclusive().name) }),
    }
  }

  /** @internal The hold ended without a release by its owner. Only the first end counts. */
  lose(end: LostEnd): void {
    if (this.#state !== 'held') return
    const lost = this.#lostError(end)
    this.#lost = lost
    this.#end('lost')
    this.#controller?.abort(lost)
  }

  /** @internal A release found no hold; `ended`: the reason, if the service reported one. */
  markGone(ended: LostEnd | undefined): void {
    this.#gone = this.#lostError(ended ?? { reason: 'expired', text: 'it was gone when its release arrived' })
  }

  /** @internal Set when a release found no hold, whose end was not known here. */
  get gone(): HoldLostError | undefined {
    return this.#gone
  }

  /** @internal */
  warn(warning: HoldWarning): void {
    this.#warnings?.emit(warning)
  }

  /** @internal */
  warnReleaseFailed(cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `the release of ${quoted(this.names)} was not confirmed: ${why}`
    this.#host.warn(this, { kind: 'release-failed', message, cause })
  }

  #lostError({ reason, text }: LostEnd): HoldLostError {
    return new HoldLostError(reason, `the hold of ${quoted(this.names)} (token ${this.token}) is lost: ${text}`, {
      hint: 'stop the work; a guard rejects writes that are still in flight',
    })
  }

  get #first(): HeldLock {
    return this.locks[0] as HeldLock
  }

  #end(state: 'released' | 'lost'): void {
    this.#state = state
    this.#over?.resolve(this.#lost ?? null)
    this.#host.forget(this, this.#lost)
  }

  #lock(name: string): HeldLock {
    const lock = this.locks.find((candidate) => candidate.name === name)
    if (lock) return lock
    throw new InvalidError(`this hold has no lock ${JSON.stringify(name)}`, { hint: `it has ${quoted(this.names)}` })
  }

  #exclusive(): HeldLock {
    const lock = this.locks.find((candidate) => candidate.mode === 'exclusive')
    if (lock) return lock
    throw new InvalidError('a fence needs an exclusive lock, and this hold has none')
  }

  #track(effect: Promise<unknown>): void {
    this.assertHeld()
    if (this.#releasing) throw new NotHolderError(`the hold of ${quoted(this.names)} is being released`)
    this.#effects ??= new Set()
    const effects = this.#effects
    const done = () => effects.delete(effect)
    effects.add(effect)
    effect.then(done, done)
  }
}

export const RELEASED: Released = Object.freeze({ released: true })
export const NOT_RELEASED: Released = Object.freeze({ released: false })
/** The latest time of a Date: the deadline of a persistent hold. */
const DATE_MAX_MS = 8.64e15

export function quoted(names: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => JSON.stringify(name))
  return names.length > 3 ? `${shown.join(', ')} and ${names.length - 3} more` : shown.join(', ')
}

/**
 * @internal Registers a guarded effect in flight: `release()` waits for it, within the hold's deadline.
 * @throws HoldLostError, NotHolderError if the hold has ended or is being released: the effect must not start
 */
export function trackEffect<T>(hold: Hold, effect: Promise<T>): Promise<T> {
  hold[holdInternals].track(effect)
  return effect
}

/** @internal The (hold, lock) pair with which a register is fenced. */
export function fenceOf(hold: Hold, lock?: string): { hold: bigint; lock: string } {
  return hold[holdInternals].fence(lock)
}
