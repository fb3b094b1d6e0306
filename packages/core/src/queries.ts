import type { HoldId, Index, Millis, SessionId } from './brand.js'
import { InvalidError } from './errors.js'
import { covers } from './names.js'
import type {
  DelayView,
  HeldLock,
  Hex128,
  HoldView,
  Query,
  QueryResult,
  RegisterMetadata,
  RegisterView,
  SessionView,
  WaiterView,
} from './operations.js'
import type { Delay, Hold, Lock, Register, Session, Waiter } from './state/elements.js'
import type { LockState } from './lock-state.js'

export const QUERY_LIMIT_DEFAULT = 100
export const QUERY_LIMIT_MAX = 1000
const DELAYS_SHOWN_MAX = 1000

/** Where a page begins: after this hold id, this arrival and this session id. */
interface Page {
  readonly hold: number
  readonly arrival: number
  readonly session: number
}

/**
 * Returns a page of holds (by id) and waiters (by arrival), restricted by name or prefix (whole path segments). `sessions`
 * has the sessions that the page names. Without name and prefix it has all other sessions too, by id and page by page, so a
 * session may be on more than one page.
 * @throws InvalidError for an invalid limit or cursor
 */
export function queryState(state: LockState, query: Query, index: Index): QueryResult {
  const limit = query.limit ?? QUERY_LIMIT_DEFAULT
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > QUERY_LIMIT_MAX) {
    throw new InvalidError(`a query's limit is 1 to ${QUERY_LIMIT_MAX}, not ${limit}`)
  }
  const page = parsePage(query.cursor)
  const { machine } = state
  const { now } = machine
  const lock = query.name === undefined ? undefined : machine.locks.get(query.name)
  const wanted = (names: readonly { readonly name: string }[]): boolean => {
    if (query.name !== undefined) return names.some((one) => one.name === query.name)
    return query.prefix === undefined || names.some((one) => covers(query.prefix as string, one.name))
  }
  const holdSource = query.name === undefined ? machine.holds.values() : holdsOf(lock)
  const waiterSource = query.name === undefined ? machine.waiters.values() : waitersOf(lock)
  const held = take(holdSource, limit, (hold) => hold.id > page.hold && wanted(hold.held))
  const pending = take(waiterSource, limit, (waiter) => waiter.arrival > page.arrival && wanted(waiter.acquire.locks))
  const everything = query.name === undefined && !query.prefix
  const listed = take(everything ? machine.sessions.values() : [], limit, (session) => session.id > page.session)
  const sessions = new Set(listed.items)
  for (const hold of held.items) if (hold.session !== undefined) sessions.add(hold.session)
  for (const waiter of pending.items) sessions.add(waiter.session)
  const more = held.more || pending.more || listed.more
  const last: Page = {
    hold: held.items.at(-1)?.id ?? page.hold,
    arrival: pending.items.at(-1)?.arrival ?? page.arrival,
    session: listed.items.at(-1)?.id ?? page.session,
  }
  return {
    held: held.items.map((hold) => holdView(hold, now)),
    pending: pending.items.map((waiter) => waiterView(waiter, now)),
    delays: delayViews(machine.delays.values(), now, wanted),
    sessions: [...sessions].sort((a, b) => a.id - b.id).map((session) => sessionView(session, now)),
    next: more ? `${last.hold}.${last.arrival}.${last.session}` : undefined,
    at: { epoch: machine.epoch, index, ordinal: LAST_ORDINAL },
  }
}

/** The ordinal of a cursor behind every event of its entry. */
export const LAST_ORDINAL = 2 ** 32 - 1

export function registerOf(state: LockState, key: string): RegisterView | undefined {
  const register = state.machine.registers.get(key)
  if (register === undefined) return undefined
  return { key, value: register.value, version: register.version, lock: register.lock }
}

/**
 * Returns a page of registers by key, without their values: those that `prefix` covers and whose key is above `after`.
 * @throws InvalidError for an invalid limit
 */
export function registersOf(
  state: LockState,
  query: {
    readonly prefix?: string | undefined
    readonly limit?: number | undefined
    readonly after?: string | undefined
  },
): { registers: RegisterMetadata[]; next: string | undefined } {
  const { prefix, limit = QUERY_LIMIT_DEFAULT, after } = query
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > QUERY_LIMIT_MAX) {
    throw new InvalidError(`a query's limit is 1 to ${QUERY_LIMIT_MAX}, not ${limit}`)
  }
  const { registers } = state.machine
  const keys: string[] = []
  for (const key of registers.keys()) {
    if ((after !== undefined && key <= after) || (prefix && !covers(prefix, key))) continue
    keys.push(key)
    // At most a few pages are ever sorted, however many registers there are.
    if (keys.length > limit * 4 + 1) lowest(keys, limit + 1)
  }
  lowest(keys, limit + 1)
  const page = keys.slice(0, limit)
  const facts = page.map((key) => {
    const { version, lock, value } = registers.get(key) as Register
    return { key, version, lock, bytes: value.length }
  })
  return { registers: facts, next: keys.length > limit ? page.at(-1) : undefined }
}

/** Keeps the first `count` keys in the order of their code units. */
function lowest(keys: string[], count: number): void {
  keys.sort((a, b) => (a < b ? -1 : 1))
  keys.length = Math.min(keys.length, count)
}

/** What a server needs to authorize the use of a session and to number its requests. */
export interface SessionDetails {
  readonly id: SessionId
  readonly secret: Hex128
  /** That of its `openSession` command. */
  readonly nonce: Hex128
  readonly ttlMs: Millis
  /** Until it expires without a renewal. */
  readonly remainingMs: Millis
  readonly local: boolean
  readonly client: string
  /** The highest request number that the session has used; 0: none. */
  readonly highestRequest: number
  /** Requests whose answer is kept, in ascending order. */
  readonly answered: readonly number[]
  /** Queued acquires, in ascending order. */
  readonly waiting: readonly number[]
}

/** Returns a copy of a session's details, or undefined if there is no such session. */
export function sessionOf(state: LockState, id: number): SessionDetails | undefined {
  const session = state.machine.sessions.get(id)
  if (session === undefined) return undefined
  const answered: number[] = []
  const waiting: number[] = []
  let highestRequest = session.lowest - 1
  for (const request of session.acknowledged) if (request > highestRequest) highestRequest = request
  for (const [request, answer] of session.answers) {
    if (request > highestRequest) highestRequest = request
    if (answer.waiter === undefined) answered.push(request)
    else waiting.push(request)
  }
  const { secret, nonce, ttlMs, local, client } = session
  const remainingMs = left(session.expiresAt, state.machine.now)
  answered.sort((a, b) => a - b)
  waiting.sort((a, b) => a - b)
  return { id: session.id, secret, nonce, ttlMs, remainingMs, local, client, highestRequest, answered, waiting }
}

/** Returns a session's secret in constant time, or undefined if there is no such session. */
export function sessionSecretOf(state: LockState, id: number): Hex128 | undefined {
  return state.machine.sessions.get(id)?.secret
}

/** What a server needs to authorize the release and the adoption of a hold. */
export interface HoldDetails {
  readonly id: HoldId
  readonly locks: readonly HeldLock[]
  /** Undefined for a persistent hold that has left its session. */
  readonly session: SessionId | undefined
  /** Of a persistent or portable hold. */
  readonly secret: Hex128 | undefined
  readonly persistent: boolean
  /** Whether it is persistent and its grant was acknowledged, so that it outlives its session. */
  readonly confirmed: boolean
}

/** Returns a copy of a hold's details, or undefined if there is no such hold. */
export function holdDetailsOf(state: LockState, id: number): HoldDetails | undefined {
  const hold = state.machine.holds.get(id)
  if (hold === undefined) return undefined
  const { secret, persistent, confirmed } = hold.terms
  return {
    id: hold.id,
    locks: hold.held,
    session: hold.session?.id,
    secret,
    persistent,
    confirmed,
  }
}

/** Returns the ids of the holds of one lock, oldest first. */
export function holdsOfLock(state: LockState, name: string): HoldId[] {
  return holdsOf(state.machine.locks.get(name)).map((hold) => hold.id)
}

/** Returns one hold, or undefined if it does not exist. */
export function holdOf(state: LockState, id: number): HoldView | undefined {
  const hold = state.machine.holds.get(id)
  return hold === undefined ? undefined : holdView(hold, state.machine.now)
}

/** Returns the ids of all sessions in the service's own process. */
export function localSessions(state: LockState): number[] {
  return [...state.machine.sessions.values()].filter((session) => session.local).map((session) => session.id)
}

/** Counts for status pages and metrics. */
export function countsOf(state: LockState): {
  sessions: number
  holds: number
  waiters: number
  delays: number
  locks: number
  registers: number
} {
  const { sessions, holds, waiters, delays, locks, registers } = state.machine
  return {
    sessions: sessions.size,
    holds: holds.size,
    waiters: waiters.size,
    delays: delays.size,
    locks: locks.size,
    registers: registers.size,
  }
}

/** Returns the smallest token that may still be in use: that of the oldest hold, or the next one if nothing is held. */
export function oldestLiveSerial(state: LockState): number {
  let oldest = state.machine.counter + 1
  for (const hold of state.machine.holds.values()) for (const held of hold.held) oldest = Math.min(oldest, held.token)
  return oldest
}

function parsePage(cursor: string | undefined): Page {
  if (cursor === undefined) return { hold: 0, arrival: 0, session: 0 }
  const match = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(cursor)
  if (match === null) throw new InvalidError(`not a cursor of a query: ${JSON.stringify(cursor.slice(0, 40))}`)
  return { hold: Number(match[1]), arrival: Number(match[2]), session: Number(match[3]) }
}

function take<T>(source: Iterable<T>, limit: number, wanted: (item: T) => boolean): { items: T[]; more: boolean } {
  const items: T[] = []
  for (const item of source) {
    if (!wanted(item)) continue
    if (items.length === limit) return { items, more: true }
    items.push(item)
  }
  return { items, more: false }
}

function holdsOf(lock: Lock | undefined): Hold[] {
  if (lock === undefined) return []
  const holds = lock.exclusive === undefined ? [...(lock.readers?.holds ?? [])] : [lock.exclusive]
  for (const hold of lock.semaphore?.slots ?? []) if (hold !== undefined) holds.push(hold)
  return holds.sort((a, b) => a.id - b.id)
}

function* waitersOf(lock: Lock | undefined): Iterable<Waiter> {
  for (let node = lock?.queue?.front; node !== undefined; node = node.next) yield node.waiter
}

function left(due: number, now: number): Millis {
  return Math.max(0, due - now) as Millis
}

function holdView(hold: Hold, now: number): HoldView {
  return {
    id: hold.id,
    locks: hold.held,
    session: hold.session?.id,
    client: hold.client,
    data: hold.terms.data,
    persistent: hold.terms.persistent,
    ageMs: left(now, hold.grantedAt),
    remainingMs: hold.session === undefined || hold.terms.confirmed ? undefined : left(hold.session.expiresAt, now),
  }
}

function waiterView(waiter: Waiter, now: number): WaiterView {
  return {
    session: waiter.session.id,
    request: waiter.acquire.request,
    client: waiter.session.client,
    locks: waiter.acquire.locks,
    waitingMs: left(now, waiter.queuedAt),
    remainingMs: waiter.dueAt < 0 ? undefined : left(waiter.dueAt, now),
  }
}

function sessionView(session: Session, now: number): SessionView {
  return {
    id: session.id,
    client: session.client,
    ttlMs: session.ttlMs,
    remainingMs: left(session.expiresAt, now),
    holds: session.holds.size,
    waiters: session.waiters.size,
  }
}

function delayViews(
  delays: Iterable<Delay>,
  now: number,
  wanted: (names: readonly { readonly name: string }[]) => boolean,
): DelayView[] {
  const views: DelayView[] = []
  for (const delay of delays) {
    for (const held of delay.held) {
      if (views.length >= DELAYS_SHOWN_MAX) return views
      if (!wanted([held])) continue
      const view = { name: held.name, mode: held.mode, remainingMs: left(delay.dueAt, now) }
      views.push(held.slot === undefined ? view : { ...view, slot: held.slot })
    }
  }
  return views
}
