import type { Event, SessionId } from '@leasehold/core'
import type { Violations } from './violation.js'

/** Rounding to whole milliseconds, on the way in and out. */
const ROUNDING_MS = 3

interface Lease {
  readonly ttlMs: number
  /** When the service received the last renewal (or the opening) that it has acknowledged. */
  receivedMs: number
}

/** No session ends earlier than its TTL after the last acknowledged renewal was received. */
export class SessionChecker {
  readonly #leases = new Map<SessionId, Lease>()
  readonly #openings = new Map<string, number>()
  /** Clocks run at most so much fast; undefined: nothing is promised. */
  clockBound: number | undefined = 0.05
  ended = 0

  readonly #violations: Violations
  readonly #nowMs: () => number

  constructor(violations: Violations, nowMs: () => number) {
    this.#violations = violations
    this.#nowMs = nowMs
  }

  /** All sessions have ended. */
  restored(): void {
    this.#leases.clear()
  }

  /** A member is asked to open a session. Returns when the first one was asked for the same. */
  opening(nonce: string, receivedMs: number): number {
    const first = this.#openings.get(nonce) ?? receivedMs
    this.#openings.set(nonce, first)
    return first
  }

  /** The service has answered: it had received the renewal or opening at `receivedMs`. */
  acknowledged(session: SessionId, ttlMs: number | undefined, receivedMs: number): void {
    const lease = this.#leases.get(session)
    if (lease) lease.receivedMs = Math.max(lease.receivedMs, receivedMs)
    else if (ttlMs !== undefined) this.#leases.set(session, { ttlMs, receivedMs })
  }

  /** The events of an entry, when the first member has applied it. */
  entry(events: readonly Event[]): void {
    const granted = new Set<SessionId>()
    for (const event of events) {
      if (event.kind === 'held') granted.add(event.session)
      if (event.kind !== 'sessionEnded') continue
      if (event.reason === 'expired' && granted.has(event.session)) {
        this.#violations.report('I7', `session ${event.session} is granted a lock in the entry in which it expires`)
      }
      const lease = this.#leases.get(event.session)
      this.#leases.delete(event.session)
      if (event.reason !== 'expired') continue
      this.ended++
      if (!lease || this.clockBound === undefined) continue
      const lived = this.#nowMs() - lease.receivedMs
      const least = lease.ttlMs / (1 + this.clockBound) - ROUNDING_MS
      if (lived >= least) continue
      this.#violations.report(
        'I4',
        `session ${event.session} ended ${lived} ms after a renewal was received that was acknowledged; its ttl is ${lease.ttlMs} ms`,
      )
    }
  }
}
