import {
  type Ack,
  type Change,
  type EndReason,
  type Grant,
  type Hex128,
  type HoldId,
  LimitError,
  type Refused,
  REQUEST_WINDOW,
  type SessionId,
} from '@leasehold/core'
import { ANSWERS_KEPT, ENDS_KEPT, REPEATS_MAX } from '../limits.js'
import type { SessionInfo } from '../state-queries.js'

/** The outcome of an acquire that waited. */
export type Outcome =
  | { readonly kind: 'granted'; readonly grant: Grant }
  | { readonly kind: 'refused'; readonly refused: Refused }
  | { readonly kind: 'session-ended' }

export type OutcomeListener = (outcome: Outcome) => void

/**
 * A session that is used over HTTP, where no connection counts requests: the server numbers them, unless the client
 * sends its own number to be able to retry a request whose response was lost.
 *
 * A number is `open` while this server processes its request. Then its answer is either `kept` by the service, because
 * the client may retry (its own numbers, and those of an earlier process), or `done`: it is acknowledged with the next
 * request. Numbers start above every number that the state knows of the session.
 */
export class HttpSession {
  readonly id: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  /** When the last successful open or renewal was sent, on the clock of this server; undefined if another server sent it. */
  leaseFromMs: number | undefined
  /** The highest change number that was applied. */
  seen = 0
  /** Whether any request of this session was granted: its client may depend on the session, even if retries fail. */
  granted: boolean
  /** The term in which the numbers were last compared with the state. */
  term: number
  #next: number
  readonly #open = new Map<number, { readonly own: boolean; users: number }>()
  #kept: number[]
  readonly #done: Set<number>
  readonly #listeners = new Map<number, Set<OutcomeListener>>()
  readonly #ends = new Map<HoldId, EndReason>()

  constructor(info: SessionInfo, term: number) {
    this.id = info.id
    this.secret = info.secret
    this.ttlMs = info.ttlMs
    this.term = term
    this.granted = info.answered.length > 0
    this.#next = info.highest + 1
    this.#kept = [...info.answered].sort((a, b) => a - b)
    // The connections of waiters of an earlier process are closed: no client would receive the grant.
    this.#done = new Set(info.waiting)
  }

  /** Whether any request of this session is open. */
  get busy(): boolean {
    return this.#open.size > 0
  }

  /** Adopts the numbers of the state: another leader may have numbered requests since. */
  refresh(info: SessionInfo, term: number): void {
    this.#next = Math.max(this.#next, info.highest + 1)
    this.term = term
  }

  /** Claims a request number; `given` is the client's own. Every claim is followed by one {@link releaseNumber}. */
  claimNumber(given?: number): number {
    const request = given ?? this.#next
    const open = this.#open.get(request)
    if (open !== undefined) open.users++
    else this.#open.set(request, { own: given === undefined, users: 1 })
    // Requests with the numbers that were skipped may still be in transit.
    for (let skipped = Math.max(this.#next, request - ANSWERS_KEPT); skipped < request; skipped++) this.#keep(skipped)
    if (request >= this.#next) this.#next = request + 1
    this.#done.delete(request)
    this.#kept = this.#kept.filter((kept) => kept !== request)
    return request
  }

  /** Whether more than one call processes this number. */
  isShared(request: number): boolean {
    return (this.#open.get(request)?.users ?? 0) > 1
  }

  releaseNumber(request: number): void {
    const open = this.#open.get(request)
    if (open === undefined || --open.users > 0) return
    this.#open.delete(request)
    if (open.own) this.#done.add(request)
    else this.#keep(request)
  }

  /** Acknowledges an answer with the next command, because its client never retries the request. */
  discardAnswer(request: number): void {
    this.#kept = this.#kept.filter((kept) => kept !== request)
    if (!this.#open.has(request)) this.#done.add(request)
  }

  /** The acknowledgement to send with the next request or renewal. */
  ack(): Ack {
    let lowest = this.#next
    for (const request of this.#open.keys()) lowest = Math.min(lowest, request)
    const first = this.#kept[0]
    if (first !== undefined) lowest = Math.min(lowest, first)
    const also: number[] = []
    for (const request of this.#done) {
      if (request >= lowest && also.length < REQUEST_WINDOW / 2) also.push(request)
    }
    return { lowest, also }
  }

  /** Removes the numbers of `ack`, whose command was applied. */
  acknowledged(ack: Ack): void {
    for (const request of ack.also) this.#done.delete(request)
    for (const request of this.#done) if (request < ack.lowest) this.#done.delete(request)
  }

  /**
   * Calls `listener` once with the outcome of the acquire. Returns a function that unsubscribes it.
   * @throws LimitError when too many calls wait for the same request
   */
  onOutcome(request: number, listener: OutcomeListener): () => void {
    const all = this.#listeners.get(request) ?? new Set()
    if (all.size >= REPEATS_MAX) throw new LimitError(`${all.size} calls already wait for request ${request}`)
    all.add(listener)
    this.#listeners.set(request, all)
    return () => {
      all.delete(listener)
      if (all.size === 0 && this.#listeners.get(request) === all) this.#listeners.delete(request)
    }
  }

  /** Applies a change that the service pushed; changes that were applied before are ignored. */
  applyChange(change: Change): void {
    if (change.number <= this.seen) return
    this.seen = change.number
    if (change.kind === 'ended') {
      this.#ends.set(change.hold, change.reason)
      for (const hold of this.#ends.keys()) if (this.#ends.size > ENDS_KEPT) this.#ends.delete(hold)
    } else if (change.kind === 'granted') this.resolveOutcome(change.request, { kind: 'granted', grant: change.grant })
    else this.resolveOutcome(change.request, { kind: 'refused', refused: change.refused })
  }

  /** Why a hold of this session ended, if that is one of the {@link ENDS_KEPT} latest ends. */
  endOf(hold: HoldId): EndReason | undefined {
    return this.#ends.get(hold)
  }

  resolveOutcome(request: number, outcome: Outcome): void {
    const all = this.#listeners.get(request)
    if (all === undefined) return
    this.#listeners.delete(request)
    for (const listener of all) listener(outcome)
  }

  /** Reports the end of the session to every waiting acquire. */
  end(): void {
    for (const request of this.#listeners.keys()) this.resolveOutcome(request, { kind: 'session-ended' })
  }

  #keep(request: number): void {
    if (this.#kept.includes(request)) return
    this.#kept = [...this.#kept, request].sort((a, b) => a - b)
    while (this.#kept.length > ANSWERS_KEPT) this.#done.add(this.#kept.shift() as number)
  }
}
