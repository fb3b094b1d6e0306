import { CompactingMap, type EndReason, type HoldLostError, SessionEndedError, UnavailableError } from '@leasehold/core'
import type { Elapsed } from './elapsed.js'
import { lostEnd, type LostEnd, type SessionEndReason } from '../end-reasons.js'
import type { EngineGrant, EngineSession, EngineSessionListener } from '../engine.js'
import { Hold, type HoldHost, type HoldWarning, NOT_RELEASED, RELEASED, type Released } from '../hold/hold.js'
import { begin, type End, isObserved, observed } from '../observers.js'
import type { ClientPlatform } from '../platform.js'
import { after, keepAlive } from '../async/timers.js'

export interface LeaseKeeperOptions {
  readonly platform: ClientPlatform
  readonly elapsed: Elapsed
  readonly session: EngineSession
  /** When the opening was sent, in {@link Elapsed} time. */
  readonly sentAt: number
  readonly ttlMs: number
  readonly marginMs: number
  /** The client's namespace prefix. */
  readonly prefix: string
  /** How long a release may wait for the service's answer; less if the session ends before. */
  readonly answerTimeoutMs: number
  /** The session serves one acquire only and is closed with its hold. */
  readonly dedicated: boolean
  readonly onEnd: (keeper: LeaseKeeper) => void
  /** Gets the send time of the opening, then of every acknowledged renewal. */
  readonly onAcknowledged?: (sentAt: number) => void
  readonly onWarning: (hold: Hold, warning: HoldWarning) => void
}

/** Concurrent attempts to renew; before the deadline no more are needed. */
const ATTEMPTS_MAX = 8
/** Longest interval between two checks of the clocks, so that a suspend is noticed soon. */
const CLOCK_CHECK_MS = 1000
/** Rounding error of sums of clock readings: it must not delay a timer by a millisecond. */
const ROUNDING_MS = 1e-6
/** Ends that arrive before their grant; more means that the engine is broken. */
const EARLY_ENDS_MAX = 10_000

/**
 * Renews one session and enforces its local deadline: *send* time of the last acknowledged renewal (or of the opening)
 * + TTL − margin, on {@link Elapsed} time.
 *
 * - *live*: renewed at a third of the TTL; an attempt without an answer is followed by others until the deadline. After
 *   the second attempt is due, `warning`.
 * - *ended*: by the deadline (the session is abandoned: no renewal, no release), by the service, or by `close`. All holds
 *   are lost; later answers are dropped.
 */
export class LeaseKeeper implements EngineSessionListener, HoldHost {
  readonly platform: ClientPlatform
  readonly session: EngineSession
  readonly dedicated: boolean
  readonly #options: LeaseKeeperOptions
  readonly #elapsed: Elapsed
  readonly #leaseMs: number
  readonly #intervalMs: number
  readonly #retryMs: number
  readonly #holds = new CompactingMap<bigint, Hold>()
  readonly #earlyEnds = new Map<bigint, LostEnd>()
  /** Holds that are being released, by id. */
  readonly #releasing = new CompactingMap<bigint, Releasing>()
  /** For observers: how to report the end of a hold. Made when something observes. */
  #observations: Map<bigint, End> | undefined
  #acquiring = 0
  #acquiresDone: () => void = () => {}
  #ackedSentAt: number
  #nextAttemptAt: number
  #limitAt = Number.POSITIVE_INFINITY
  #renewing = true
  #warned = false
  #lastError: unknown
  #attempts = 0
  #renewalsSeen: bigint | undefined
  #cancelTimer: () => void = () => {}
  #ended: LostEnd | undefined

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.platform = options.platform
    this.session = options.session
    this.dedicated = options.dedicated
    this.#elapsed = options.elapsed
    this.#leaseMs = options.ttlMs - options.marginMs
    this.#intervalMs = Math.min(options.ttlMs / 3, this.#leaseMs / 2)
    this.#retryMs = this.#intervalMs / 2
    this.#ackedSentAt = options.sentAt
    this.#nextAttemptAt = options.sentAt + this.#intervalMs
    this.session.listener = this
    options.onAcknowledged?.(options.sentAt)
    if (this.check()) this.#schedule()
  }

  get prefixLength(): number {
    return this.#options.prefix.length
  }

  get ttlMs(): number {
    return this.#options.ttlMs
  }

  get live(): boolean {
    return this.#ended === undefined
  }

  get ended(): LostEnd | undefined {
    return this.#ended
  }

  get holds(): Iterable<Hold> {
    return this.#holds.values()
  }

  fullName(name: string): string {
    return this.#options.prefix + name
  }

  /** Whether the session is alive, now. Ends it when its deadline has passed. */
  check(): boolean {
    if (this.#ended) return false
    this.#readLease()
    if (this.#ended) return false
    if (this.#elapsed.now() < this.#deadline) return true
    this.#expire()
    return false
  }

  /** Reads what the other thread has renewed or ended, also after the event loop of this one was blocked. */
  #readLease(): void {
    const { lease } = this.session
    if (!lease) return
    const { ended } = lease
    if (ended === 'deadline') return this.#expire()
    if (ended !== undefined) return this.#end({ reason: ended, text: 'its session has ended' })
    // Once per renewal: from then on this thread's clocks count, which also handle a wall clock that was set back.
    const { renewals } = lease
    if (renewals === this.#renewalsSeen) return
    this.#renewalsSeen = renewals
    const sentAt = this.#elapsed.now() - lease.sinceAcknowledgedMs()
    if (sentAt <= this.#ackedSentAt) return
    this.#ackedSentAt = sentAt
    this.#warned = false
  }

  #expire(): void {
    const maxHold = this.#limitAt < this.#ackedSentAt + this.#leaseMs
    const text = maxHold
      ? 'maxHold has passed'
      : `no renewal was acknowledged in time (ttl ${this.ttlMs} ms, margin ${this.#options.marginMs} ms)`
    const warned = this.#warned || maxHold
    const overdue = [...this.#holds.values()]
    this.#ended = { reason: 'deadline', text }
    if (!warned) for (const hold of overdue) this.#warnOverdue(hold, 0)
    this.#finish()
    this.session.abandon()
  }

  /** Stops renewing. The session expires at the service. */
  abandon(): void {
    if (this.#ended) return
    this.#end({ reason: 'deadline', text: 'its session was abandoned' })
    this.session.abandon()
  }

  remaining(): number {
    if (!this.#ended) this.#readLease()
    return this.#ended ? 0 : this.#deadline - this.#elapsed.now()
  }

  peek(): number {
    return this.#ended ? 0 : this.#deadline - this.#elapsed.peek()
  }

  unconfirmedMs(): number {
    return this.#elapsed.now() - this.#ackedSentAt
  }

  /**
   * Runs an acquire or an adoption on this session and makes a hold of its grant. Undefined: the session, or the hold, ended
   * first.
   */
  async grantHold(acquire: () => Promise<EngineGrant>, terms: HoldTerms): Promise<Hold | undefined> {
    if (!this.check()) return undefined
    this.acquireBegins()
    let grant: EngineGrant
    try {
      grant = await acquire()
    } catch (error) {
      this.notGranted()
      throw error
    }
    return this.granted(grant, terms)
  }

  /** An acquire is sent on this session: followed by `granted` or `notGranted`. */
  acquireBegins(): void {
    // Waits without a limit have no timer.
    if (this.#acquiring++ === 0) this.#acquiresDone = keepAlive(this.platform)
  }

  notGranted(): void {
    this.#acquiring--
    if (this.#acquiring === 0) {
      this.#acquiresDone()
      if (this.#earlyEnds.size > 0) this.#earlyEnds.clear()
    }
    if (this.dedicated) this.#closeIfUnused()
  }

  /** Makes a hold of a grant. Undefined: the session, or the hold, ended first. */
  granted(grant: EngineGrant, terms: HoldTerms): Hold | undefined {
    const hold = this.#register(grant, terms)
    this.notGranted()
    return hold
  }

  /** Renews now and waits until the service has acknowledged it, which also acknowledges earlier grants. */
  async renewNow(): Promise<boolean> {
    if (!this.check()) return false
    const sentAt = this.#elapsed.now()
    const waitEnds = keepAlive(this.platform)
    try {
      await this.session.renew(this.remaining())
    } catch (error) {
      this.#failed(error)
      return false
    } finally {
      waitEnds()
    }
    this.#acknowledged(sentAt)
    return this.check()
  }

  /** The session ends `limitMs` from now at the latest, renewals or not. */
  limit(limitMs: number): void {
    this.#limitAt = this.#elapsed.now() + limitMs
    this.session.lease?.limit(limitMs)
    this.#schedule()
  }

  /** The session ends at the deadline that it has now. */
  stopRenewing(): void {
    this.#renewing = false
    this.session.lease?.stopRenewing()
    this.#schedule()
  }

  /** Releases in flight: `close` with `drain` waits for them before it ends the sessions. */
  get releases(): readonly Promise<unknown>[] {
    return [...this.#releasing.values()].map(({ outcome }) => outcome)
  }

  release(hold: Hold): Promise<Released> {
    const { answerTimeoutMs } = this.#options
    // Whole milliseconds: the fractions of sums of clock readings mean nothing, and must not decide when a timer fires.
    const timeoutMs = this.#ended
      ? answerTimeoutMs
      : Math.max(1, Math.min(answerTimeoutMs, Math.round(this.remaining())))
    const secret = hold.persistent ? hold.secret : undefined
    const end = isObserved('release') ? begin('release', () => ({ kind: 'release', hold })) : undefined
    const releasing: Releasing = { ended: undefined, outcome: NOT_YET }
    this.#releasing.set(hold.id, releasing)
    const sent = this.session.release(hold.id, secret === undefined ? { timeoutMs } : { timeoutMs, secret })
    const told = sent.then(
      ({ released }) => {
        this.#releasing.delete(hold.id)
        if (!released) hold.markGone(releasing.ended)
        if (this.dedicated) this.#closeIfUnused()
        return released ? RELEASED : NOT_RELEASED
      },
      (error: unknown) => {
        this.#releasing.delete(hold.id)
        if (this.dedicated) this.#closeIfUnused()
        return this.#notReleased(hold, releasing, error)
      },
    )
    releasing.outcome = observed(end, told, ({ released }) => ({ released }))
    return releasing.outcome
  }

  #notReleased(hold: Hold, releasing: Releasing, error: unknown): Released {
    if (!(error instanceof SessionEndedError)) throw error
    if (this.#ended && this.#ended.reason !== 'deadline') {
      hold.markGone(releasing.ended ?? this.#ended)
      return NOT_RELEASED
    }
    throw new UnavailableError('the release was not acknowledged before the session ended', {
      cause: error,
      hint: 'the lock passes on at the end of the TTL',
    })
  }

  forget(hold: Hold, lost: HoldLostError | undefined): void {
    this.#holds.delete(hold.id)
    if (lost) this.#closeIfUnused()
    const observedEnd = this.#observations?.get(hold.id)
    if (!observedEnd) return
    this.#observations?.delete(hold.id)
    observedEnd(lost === undefined ? {} : { error: lost, ...this.#overlap(lost) })
  }

  /** How long the hold may have been lost at the service without being noticed here. Not after the local deadline. */
  #overlap({ reason }: HoldLostError): { overlapMaxMs?: number } {
    return reason === 'deadline' || reason === 'closed' ? {} : { overlapMaxMs: this.unconfirmedMs() }
  }

  /** A dedicated session ends with its hold. */
  #closeIfUnused(): void {
    if (this.dedicated && this.#holds.size === 0 && this.#acquiring === 0) void this.close(this.ttlMs)
  }

  warn(hold: Hold, warning: HoldWarning): void {
    hold.warn(warning)
    this.#options.onWarning(hold, warning)
  }

  /** The service reports the end of a hold. After the deadline it comes too late: the hold was lost by the deadline. */
  holdEnded(id: bigint, reason: EndReason, text: string): void {
    this.check()
    const hold = this.#holds.get(id)
    const releasing = this.#releasing.get(id)
    if (hold) hold.lose(lostEnd(reason, text))
    else if (releasing) releasing.ended = lostEnd(reason, text)
    else if (this.#acquiring > 0 && this.#earlyEnds.size < EARLY_ENDS_MAX)
      this.#earlyEnds.set(id, lostEnd(reason, text))
  }

  sessionEnded(reason: SessionEndReason): void {
    this.check()
    this.#end(lostEnd(reason))
  }

  /** A clean end. Remaining holds stop being held before the request is sent. */
  async close(timeoutMs: number): Promise<void> {
    if (!this.check()) return
    this.#end({ reason: 'closed', text: 'its client was closed' })
    try {
      await this.session.close(timeoutMs)
    } catch {
      // The session ends by its TTL.
      this.session.abandon()
    }
  }

  get #deadline(): number {
    return Math.min(this.#ackedSentAt + this.#leaseMs, this.#limitAt)
  }

  #register(grant: EngineGrant, terms: HoldTerms): Hold | undefined {
    if (!this.check()) return undefined
    const hold = new Hold(this, grant, terms.persistent)
    if (isObserved('hold')) {
      const observedEnd = begin('hold', () => ({ kind: 'hold', hold }))
      if (observedEnd) (this.#observations ??= new Map()).set(hold.id, observedEnd)
    }
    this.#holds.set(hold.id, hold)
    const early = this.#earlyEnds.size > 0 ? this.#earlyEnds.get(hold.id) : undefined
    if (early) {
      this.#earlyEnds.delete(hold.id)
      hold.lose(early)
      return undefined
    }
    return hold
  }

  #end(end: LostEnd): void {
    if (this.#ended) return
    this.#ended = end
    this.#finish()
  }

  #finish(): void {
    const ended = this.#ended as LostEnd
    this.#cancelTimer()
    this.#options.onEnd(this)
    for (const hold of [...this.#holds.values()]) {
      // A persistent hold has left its session: only a raised epoch, which gives it a new id, ends it here.
      if (hold.persistent && ended.reason !== 'epoch-changed') continue
      hold.lose(ended)
    }
  }

  #tick(): void {
    if (!this.check()) return
    const now = this.#elapsed.now()
    if (this.#renewsItself && now >= this.#nextAttemptAt) this.#attempt(now)
    if (this.#renewing && !this.#warned && now >= this.#warnAt) {
      this.#warned = true
      for (const hold of [...this.#holds.values()]) this.#warnOverdue(hold, this.#deadline - now)
    }
    this.#schedule()
  }

  get #renewsItself(): boolean {
    return this.#renewing && this.session.lease === undefined
  }

  get #warnAt(): number {
    return this.#ackedSentAt + this.#intervalMs + this.#retryMs
  }

  #attempt(now: number): void {
    const lagMs = now - this.#nextAttemptAt
    this.#nextAttemptAt = now + this.#retryMs
    if (this.#attempts >= ATTEMPTS_MAX) return
    this.#attempts++
    const { id: session } = this.session
    const end = begin('renew', () => ({ kind: 'renew', session, holds: this.#holds.size, lagMs }))
    observed(end, this.session.renew(this.#deadline - now), () => ({})).then(
      () => {
        this.#attempts--
        this.#acknowledged(now)
      },
      (error: unknown) => {
        this.#attempts--
        this.#failed(error)
      },
    )
  }

  /** The service acknowledged an attempt that was sent at `sentAt`. After the deadline this has no effect. */
  #acknowledged(sentAt: number): void {
    if (!this.check() || sentAt <= this.#ackedSentAt) return
    this.#ackedSentAt = sentAt
    this.#nextAttemptAt = sentAt + this.#intervalMs
    this.#warned = false
    this.#lastError = undefined
    this.#options.onAcknowledged?.(sentAt)
    this.#schedule()
  }

  #failed(error: unknown): void {
    if (this.#ended) return
    if (error instanceof SessionEndedError) this.#end({ reason: 'expired', text: error.message })
    else this.#lastError = error
  }

  #warnOverdue(hold: Hold, remainingMs: number): void {
    if (hold.persistent) return
    const cause = this.#lastError
    const message = `a renewal of ${JSON.stringify(hold.name)} is overdue: ${Math.round(remainingMs)} ms are left`
    this.warn(hold, { kind: 'renewal-overdue', message, remainingMs, ...(cause === undefined ? {} : { cause }) })
  }

  #schedule(): void {
    this.#cancelTimer()
    if (this.#ended) return
    const now = this.#elapsed.now()
    let due = this.#deadline
    if (this.#renewsItself) due = Math.min(due, this.#nextAttemptAt)
    if (this.#renewing && !this.#warned) due = Math.min(due, this.#warnAt)
    const delayMs = Math.min(Math.max(Math.ceil(due - now - ROUNDING_MS), 1), CLOCK_CHECK_MS)
    this.#cancelTimer = after(this.platform, delayMs, () => this.#tick())
  }
}

/** A release in flight, and the end of its hold, if the service reported one meanwhile. */
interface Releasing {
  ended: LostEnd | undefined
  outcome: Promise<Released>
}

const NOT_YET: Promise<Released> = Promise.resolve(NOT_RELEASED)

export interface HoldTerms {
  readonly persistent: boolean
}
