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

/** How a waiting acquire ended. */
export type Outcome =
  | { readonly kind: 'granted'; readonly grant: Grant }
  | { readonly kind: 'refused'; readonly refused: Refused }
  | { readonly kind: 'session-ended' }

export type Waiting = (outcome: Outcome) => void

/**
 * A session that is used over HTTP, where no connection keeps count: the server numbers its requests, unless the client
 * sends a number of its own in order to repeat a request whose answer was lost.
 *
 * A number is `open` while its request is at work here; after that its answer is either `kept` with the service (the
 * client may ask again: its own numbers, and those of an earlier process) or `done` (nobody can ask again), and is
 * acknowledged with the next request. Numbers start above everything that the state knows of the session.
 */
export class HttpSession {
  readonly id: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  /** When the last acknowledged opening or renewal was sent, on this server's clock; undefined: not through this server. */
  leaseFromMs: number | undefined
  /** Highest change number that has been taken note of. */
  seen = 0
  /** A request of it was granted: who has that answer may live on it, whatever becomes of repeats. */
  granted: boolean
  /** The term in which the numbers were last compared with the state. */
  term: number
  #next: number
  readonly #open = new Map<number, { readonly own: boolean; users: number }>()
  #kept: number[]
  readonly #done: Set<number>
  readonly #waiting = new Map<number, Set<Waiting>>()
  readonly #ends = new Map<HoldId, EndReason>()

  constructor(facts: SessionInfo, term: number) {
    this.id = facts.id
    this.secret = facts.secret
    this.ttlMs = facts.ttlMs
    this.term = term
    this.granted = facts.answered.length > 0
    this.#next = facts.highest + 1
    this.#kept = [...facts.answered].sort((a, b) => a - b)
    // Whoever waited through an earlier process has lost its connection: nobody would hear of the grant.
    this.#done = new Set(facts.waiting)
  }

  get busy(): boolean {
    return this.#open.size > 0
  }

  /** Another leader may have numbered requests in between. */
  refresh(facts: SessionInfo, term: number): void {
    this.#next = Math.max(this.#next, facts.highest + 1)
    this.term = term
  }

  /** Takes a request number; `given` is the client's own. Every `take` is followed by one `finish`. */
  take(given?: number): number {
    const request = given ?? this.#next
    const open = this.#open.get(request)
    if (open !== undefined) open.users++
    else this.#open.set(request, { own: given === undefined, users: 1 })
    // Numbers that the client has skipped may still be on their way.
    for (let skipped = Math.max(this.#next, request - ANSWERS_KEPT); skipped < request; skipped++) this.#keep(skipped)
    if (request >= this.#next) this.#next = request + 1
    this.#done.delete(request)
    this.#kept = this.#kept.filter((kept) => kept !== request)
    return request
  }

  /** Whether another call works on the same number. */
  shared(request: number): boolean {
    return (this.#open.get(request)?.users ?? 0) > 1
  }

  finish(request: number): void {
    const open = this.#open.get(request)
    if (open === undefined || --open.users > 0) return
    this.#open.delete(request)
    if (open.own) this.#done.add(request)
    else this.#keep(request)
  }

  /** The client will not ask for this answer again: it is acknowledged with the next command. */
  forget(request: number): void {
    this.#kept = this.#kept.filter((kept) => kept !== request)
    if (!this.#open.has(request)) this.#done.add(request)
  }

  /** What the request, or renewal, acknowledges. */
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

  /** The command that carried `ack` has been applied. */
  acknowledged(ack: Ack): void {
    for (const request of ack.also) this.#done.delete(request)
    for (const request of this.#done) if (request < ack.lowest) this.#done.delete(request)
  }

  /** Calls `waiting` once with the outcome of the acquire. Returns a function that takes it back. */
  await(request: number, waiting: Waiting): () => void {
    const all = this.#waiting.get(request) ?? new Set()
    if (all.size >= REPEATS_MAX) throw new LimitError(`request ${request} is repeated ${all.size} times at once`)
    all.add(waiting)
    this.#waiting.set(request, all)
    return () => {
      all.delete(waiting)
      if (all.size === 0 && this.#waiting.get(request) === all) this.#waiting.delete(request)
    }
  }

  /** Takes note of a change. */
  change(change: Change): void {
    if (change.number <= this.seen) return
    this.seen = change.number
    if (change.kind === 'ended') {
      this.#ends.set(change.hold, change.reason)
      for (const hold of this.#ends.keys()) if (this.#ends.size > ENDS_KEPT) this.#ends.delete(hold)
    } else if (change.kind === 'granted') this.settle(change.request, { kind: 'granted', grant: change.grant })
    else this.settle(change.request, { kind: 'refused', refused: change.refused })
  }

  /** Why a hold of this session has ended, if that was one of its latest changes. */
  endOf(hold: HoldId): EndReason | undefined {
    return this.#ends.get(hold)
  }

  settle(request: number, outcome: Outcome): void {
    const all = this.#waiting.get(request)
    if (all === undefined) return
    this.#waiting.delete(request)
    for (const waiting of all) waiting(outcome)
  }

  /** The session is over: nobody waits any longer. */
  end(): void {
    for (const request of this.#waiting.keys()) this.settle(request, { kind: 'session-ended' })
  }

  #keep(request: number): void {
    if (this.#kept.includes(request)) return
    this.#kept = [...this.#kept, request].sort((a, b) => a - b)
    while (this.#kept.length > ANSWERS_KEPT) this.#done.add(this.#kept.shift() as number)
  }
}
