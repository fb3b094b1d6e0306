import {
  type EndReason,
  type Event,
  formatCursor,
  type HeldLock as CoreHeldLock,
  type HoldView,
  InvalidError,
  type LockRequest,
  type Mode,
  nameProblem,
  type Query,
  type QueryResult,
  type Serial,
  type SessionView,
  type Token,
  tokenOf,
  type WaiterView,
} from '@leasehold/core'
import type { HeldLock } from './hold/hold.js'
import { type Jsonable, jsonable } from './json.js'
import { checkKeys, describe } from './options.js'

/** A hold, as other clients see it. */
export interface HeldRow {
  readonly id: bigint
  readonly locks: readonly HeldLock[]
  readonly session: bigint | undefined
  readonly client: string
  readonly data: Uint8Array
  readonly persistent: boolean
  readonly ageMs: number
  readonly remainingMs: number | undefined
}

export interface PendingRow {
  readonly session: bigint
  readonly request: number
  readonly client: string
  readonly locks: readonly LockRequest[]
  readonly waitingMs: number
  readonly remainingMs: number | undefined
}

export interface SessionRow {
  readonly id: bigint
  readonly client: string
  readonly ttlMs: number
  readonly remainingMs: number
  readonly holds: number
  readonly waiters: number
}

export interface DelayRow {
  readonly name: string
  readonly mode: Mode
  readonly slot?: number
  readonly remainingMs: number
}

/** The result of `locks.query`: one consistent picture. */
export interface LocksView extends Jsonable {
  readonly held: readonly HeldRow[]
  readonly pending: readonly PendingRow[]
  readonly delays: readonly DelayRow[]
  readonly sessions: readonly SessionRow[]
  /** Cursor of the next page; undefined on the last one. */
  readonly next: string | undefined
  /** `locks.watch({ from: at })` shows everything after this answer. */
  readonly at: string
}

export type QueryOptions = Query & {
  /** Answers from what the member has applied, which may be behind. Default: a linearizable read. */
  readonly stale?: boolean
}

/** An event of a watch. `cursor` continues the watch after this event. */
export type WatchEvent = Jsonable & { readonly cursor: string } & (
    | {
        readonly kind: 'held'
        readonly id: bigint
        readonly locks: readonly HeldLock[]
        readonly session: bigint
        readonly client: string
      }
    | {
        readonly kind: 'freed'
        readonly id: bigint
        readonly locks: readonly HeldLock[]
        readonly reason: EndReason
        readonly actor: string
        readonly text: string
      }
    | { readonly kind: 'queued'; readonly session: bigint; readonly request: number; readonly names: readonly string[] }
    | {
        readonly kind: 'unqueued'
        readonly session: bigint
        readonly request: number
        readonly names: readonly string[]
        readonly reason: 'timeout' | 'cancelled' | 'session-ended'
      }
    | { readonly kind: 'sessionOpened'; readonly session: bigint; readonly client: string }
    | { readonly kind: 'sessionEnded'; readonly session: bigint; readonly reason: EndReason }
    | { readonly kind: 'put'; readonly key: string; readonly version: bigint }
    | { readonly kind: 'deleted'; readonly key: string; readonly version: bigint }
  )

/** @throws InvalidError */
export function checkQuery(options: QueryOptions): void {
  checkKeys(options, ['prefix', 'name', 'limit', 'cursor', 'stale'], 'query')
  const { limit, cursor, name, prefix } = options
  checkPrefix(prefix)
  if (name !== undefined && prefix !== undefined) {
    throw new InvalidError('a query has a name or a prefix, not both', { hint: "write prefix: 'billing'" })
  }
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
    throw new InvalidError(`limit is a whole number of at least 1, not ${describe(limit)}`, {
      hint: 'write limit: 100',
    })
  }
  if (cursor !== undefined && typeof cursor !== 'string') {
    throw new InvalidError(`cursor is the next of the previous page, not ${describe(cursor)}`, {
      hint: 'write cursor: page.next',
    })
  }
}

/** @throws InvalidError */
export function checkPrefix(prefix: unknown): void {
  const problem = prefix === undefined || prefix === '' ? undefined : nameProblem(prefix)
  if (problem !== undefined) throw new InvalidError(`prefix: ${problem}`, { hint: "write prefix: 'billing'" })
}

/** Translates the service's views for the user: full ids, and names without the client's namespace. */
export class NamespaceView {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  full(name: string): string {
    return this.#prefix + name
  }

  name(full: string): string {
    return full.startsWith(this.#prefix) ? full.slice(this.#prefix.length) : full
  }

  answer(answer: QueryResult & { epoch: number }): LocksView {
    const { epoch } = answer
    return jsonable({
      held: answer.held.map((row) => this.#held(row, epoch)),
      pending: answer.pending.map((row) => this.#pending(row, epoch)),
      delays: answer.delays.map((row) => ({ ...row, name: this.name(row.name) })),
      sessions: answer.sessions.map((row) => sessionRow(row, epoch)),
      next: answer.next,
      at: formatCursor(answer.at),
    })
  }

  event(event: Event, epoch: number): DistributiveOmit<WatchEvent, 'cursor' | 'toJSON'> {
    const id = (serial: Serial) => tokenOf(epoch, serial)
    switch (event.kind) {
      case 'held': {
        const { grant, session, client } = event
        return {
          kind: 'held',
          id: id(grant.hold),
          locks: this.#locks(grant.locks, epoch),
          session: id(session),
          client,
        }
      }
      case 'freed':
        return {
          kind: 'freed',
          id: id(event.hold),
          locks: this.#locks(event.locks, epoch),
          reason: event.reason,
          actor: event.actor,
          text: event.text,
        }
      case 'queued':
      case 'unqueued':
        return { ...event, session: id(event.session), names: event.names.map((name) => this.name(name)) }
      case 'sessionOpened':
      case 'sessionEnded':
        return { ...event, session: id(event.session) }
      case 'put':
      case 'deleted':
        return { ...event, key: this.name(event.key) }
    }
  }

  #held(row: HoldView, epoch: number): HeldRow {
    return {
      ...row,
      id: tokenOf(epoch, row.id),
      locks: this.#locks(row.locks, epoch),
      session: row.session === undefined ? undefined : tokenOf(epoch, row.session),
    }
  }

  #pending(row: WaiterView, epoch: number): PendingRow {
    const locks = row.locks.map((lock) => ({ ...lock, name: this.name(lock.name) }))
    return { ...row, session: tokenOf(epoch, row.session), locks }
  }

  #locks(locks: readonly CoreHeldLock[], epoch: number): HeldLock[] {
    return locks.map((lock) => ({ ...lock, name: this.name(lock.name), token: tokenOf(epoch, lock.token) as Token }))
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

function sessionRow(row: SessionView, epoch: number): SessionRow {
  return { ...row, id: tokenOf(epoch, row.id) }
}
