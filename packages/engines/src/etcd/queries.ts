import {
  type HoldId,
  type HoldView,
  InvalidError,
  LAST_ORDINAL,
  type Millis,
  type Mode,
  type Query,
  QUERY_LIMIT_DEFAULT,
  QUERY_LIMIT_MAX,
  type QueryResult,
  type SessionId,
  type SessionView,
  type WaiterView,
} from '@leasehold/core'
import type { Index } from '@leasehold/core'
import {
  type HeldView,
  heldView,
  type HoldRecord,
  inPrefix,
  type RequestRecord,
  recordOf,
  serialOf,
  serialPart,
  type SessionRecord,
} from './layout.js'
import type { KeyValue, RangeRequest } from './api/messages.js'
import { kvsOf, type Store } from './store.js'

/** Concurrent questions for the remaining time of leases. */
const LEASES_AT_ONCE = 32

interface Found<T> {
  readonly request: string
  readonly record: T
  readonly kv: KeyValue
}

type FoundHold = Found<HoldRecord> & { readonly view: HeldView; readonly serial: number }

/** What a query shows: one page of one consistent reading. */
interface Page {
  readonly state: LockKeys
  readonly sessions: ReadonlyMap<string, SessionFound>
  readonly held: readonly FoundHold[]
  readonly pending: readonly Found<RequestRecord>[]
  readonly shown: ReadonlySet<SessionFound>
  readonly next: string | undefined
}

/** What the rows of a page need besides the keys. */
interface Times {
  /** The wall clock of this client. */
  readonly now: number
  /** By lease: milliseconds that it still lasts. */
  readonly leases: ReadonlyMap<bigint, number>
}

/**
 * Returns what is held and what waits, at one revision, one page at a time. Ages are by the clocks of the clients that took
 * the locks. A session's row counts the holds and waiters that the query covers.
 */
export async function queryStore(
  store: Store,
  query: Query,
  options: { stale: boolean; timeoutMs: number },
): Promise<QueryResult & { epoch: number }> {
  const limit = query.limit ?? QUERY_LIMIT_DEFAULT
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > QUERY_LIMIT_MAX) {
    throw new InvalidError(`the limit of a query is 1 to ${QUERY_LIMIT_MAX}, not ${limit}`)
  }
  const start = parsePosition(query.cursor)
  const { layout } = store
  const read = (range: RangeRequest) => ({ range: { ...range, ...(options.stale ? { serializable: true } : {}) } })
  const span = query.name === undefined ? layout.locks(query.prefix) : layout.lock(query.name)
  const answer = await store.client.txn(
    { compare: [], success: [read(span), read(layout.sessions)], failure: [] },
    { timeoutMs: options.timeoutMs, repeatable: true },
  )
  const wanted = (name: string) => query.name !== undefined || inPrefix(query.prefix ?? '', name)
  const state = lockKeysOf(store, kvsOf(answer.responses[0]), wanted)
  const sessions = sessionsOf(store, kvsOf(answer.responses[1]))
  const listsAll = query.name === undefined && !query.prefix
  const page = pageOf(state, sessions, { start, limit, listsAll })
  const leases = await remainingOf(store, page, options.timeoutMs)
  const times = { now: store.platform.wallMs(), leases }
  return {
    held: page.held.map((found) => holdRow(found, page, times)),
    pending: page.pending.map((found) => waiterRow(found, times)),
    delays: [...state.delays.values()].map((found) => delayRow(found, times)),
    sessions: [...page.shown].sort((a, b) => a.serial - b.serial).map((found) => sessionRow(found, page, times)),
    next: page.next,
    at: { epoch: store.epoch, index: answer.header.revision as Index, ordinal: LAST_ORDINAL },
    epoch: store.epoch,
  }
}

/** The rows after `start`, with the sessions that they belong to. `listsAll`: also sessions without rows. */
function pageOf(
  state: LockKeys,
  sessions: ReadonlyMap<string, SessionFound>,
  { start, limit, listsAll }: { start: Position; limit: number; listsAll: boolean },
): Page {
  const holds = [...state.holds.values()].map((found): FoundHold => {
    const view = heldView(found.record, found.kv.createRevision)
    return { ...found, view, serial: view.serial as number }
  })
  const held = take(holds, (one) => one.serial, start.hold, limit)
  const pending = take([...state.waiters.values()], (one) => one.kv.createRevision, start.arrival, limit)
  const listed = take(listsAll ? [...sessions.values()] : [], (one) => one.serial, start.session, limit)
  const shown = new Set(listed.items)
  for (const { record } of [...held.items, ...pending.items]) {
    const session = sessions.get(record.sid)
    if (session) shown.add(session)
  }
  const next = [
    held.items.at(-1)?.serial ?? start.hold,
    pending.items.at(-1)?.kv.createRevision ?? start.arrival,
    listed.items.at(-1)?.serial ?? start.session,
  ]
  return {
    state,
    sessions,
    held: held.items,
    pending: pending.items,
    shown,
    next: held.more || pending.more || listed.more ? next.join('.') : undefined,
  }
}

/** Milliseconds that the leases of a page still last. */
async function remainingOf(store: Store, page: Page, timeoutMs: number): Promise<ReadonlyMap<bigint, number>> {
  const leases = new Map<bigint, number>()
  for (const { kv } of page.shown) leases.set(kv.lease, 0)
  for (const { kv } of page.state.delays.values()) leases.set(kv.lease, 0)
  const ids = [...leases.keys()].filter((id) => id !== 0n)
  for (let at = 0; at < ids.length; at += LEASES_AT_ONCE) {
    await Promise.all(
      ids.slice(at, at + LEASES_AT_ONCE).map(async (id) => {
        leases.set(id, await store.client.leaseRemaining(id, timeoutMs))
      }),
    )
  }
  return leases
}

function holdRow({ record, serial, view, kv }: FoundHold, page: Page, { now, leases }: Times): HoldView {
  const remainingMs = leases.get(page.sessions.get(record.sid)?.kv.lease ?? -1n) ?? 0
  return {
    id: serial as number as HoldId,
    locks: view.locks.map((lock) => ({
      name: lock.name,
      mode: lock.mode,
      token: lock.serial,
      ...(lock.slot === undefined ? {} : { slot: lock.slot }),
    })),
    session: kv.lease === 0n ? undefined : (serialPart(record.session) as number as SessionId),
    client: record.client,
    data: new Uint8Array(Buffer.from(record.data, 'base64')),
    persistent: record.persistent,
    ageMs: since(now, record.grantedAt),
    remainingMs: kv.lease === 0n ? undefined : (remainingMs as Millis),
  }
}

function waiterRow({ record }: Found<RequestRecord>, { now }: Times): WaiterView {
  return {
    session: serialPart(record.session) as number as SessionId,
    request: record.number,
    client: record.client,
    locks: record.locks,
    waitingMs: since(now, record.at),
    remainingMs: record.waitMs === null ? undefined : (Math.max(0, record.at + record.waitMs - now) as Millis),
  }
}

function delayRow({ name, mode, slot, kv }: DelayFound, { leases }: Times): QueryResult['delays'][number] {
  const remainingMs = (leases.get(kv.lease) ?? 0) as Millis
  return slot === undefined ? { name, mode, remainingMs } : { name, mode, slot, remainingMs }
}

function sessionRow({ sid, serial, record, kv }: SessionFound, { state }: Page, { leases }: Times): SessionView {
  const count = (found: Iterable<Found<RequestRecord>>) => [...found].filter((one) => one.record.sid === sid).length
  return {
    id: serial as SessionId,
    client: record.client,
    ttlMs: record.ttlMs as Millis,
    remainingMs: (leases.get(kv.lease) ?? 0) as Millis,
    holds: count(state.holds.values()),
    waiters: count(state.waiters.values()),
  }
}

interface DelayFound {
  readonly name: string
  readonly mode: Mode
  readonly slot: number | undefined
  readonly kv: KeyValue
}

/** The keys of locks, sorted by what they mean. */
interface LockKeys {
  /** By request. */
  readonly holds: ReadonlyMap<string, Found<HoldRecord>>
  /** By request: those that do not hold yet. */
  readonly waiters: ReadonlyMap<string, Found<RequestRecord>>
  /** By request and lock: those whose hold has ended. */
  readonly delays: ReadonlyMap<string, DelayFound>
}

function lockKeysOf(store: Store, kvs: readonly KeyValue[], wanted: (name: string) => boolean): LockKeys {
  const holds = new Map<string, Found<HoldRecord>>()
  const waiters = new Map<string, Found<RequestRecord>>()
  const delays = new Map<string, DelayFound>()
  for (const kv of kvs) {
    const parsed = store.layout.parse(kv.key)
    if (parsed === undefined || !wanted(parsed.name)) continue
    const { kind, name, request } = parsed
    if (kind === 'h') holds.set(request, { request, record: recordOf(kv), kv })
    else if (kind === 'q') waiters.set(request, { request, record: recordOf(kv), kv })
    else if (kind === 'd') {
      const record = recordOf<HoldRecord>(kv)
      const i = record.locks.findIndex((lock) => lock.name === name)
      const mode = record.locks[i]?.mode ?? 'exclusive'
      delays.set(`${request}\0${name}`, { name, mode, slot: record.terms[i]?.slot, kv })
    }
  }
  for (const request of holds.keys()) {
    waiters.delete(request)
    for (const key of delays.keys()) if (key.startsWith(`${request}\0`)) delays.delete(key)
  }
  return { holds, waiters, delays }
}

export interface SessionFound {
  readonly sid: string
  readonly serial: number
  readonly record: SessionRecord
  readonly kv: KeyValue
}

export function sessionsOf(store: Store, kvs: readonly KeyValue[]): Map<string, SessionFound> {
  const sessions = new Map<string, SessionFound>()
  for (const kv of kvs) {
    const parsed = store.layout.parse(kv.key)
    if (parsed?.kind !== 'session') continue
    const record = recordOf<SessionRecord>(kv)
    if (record.state !== 'open') continue
    sessions.set(parsed.name, { sid: parsed.name, serial: serialOf(record, kv.createRevision), record, kv })
  }
  return sessions
}

/** The first `limit` items beyond `after`, in their order. `more`: there are further ones. */
function take<T>(all: readonly T[], order: (one: T) => number, after: number, limit: number) {
  const items = all.filter((one) => order(one) > after).sort((a, b) => order(a) - order(b))
  return { items: items.slice(0, limit), more: items.length > limit }
}

function since(now: number, then: number): Millis {
  return Math.max(0, now - then) as Millis
}

/** How far the pages before have come, in each of the three lists. */
interface Position {
  readonly hold: number
  readonly arrival: number
  readonly session: number
}

/** @throws InvalidError */
function parsePosition(cursor: string | undefined): Position {
  if (cursor === undefined) return { hold: 0, arrival: 0, session: 0 }
  const match = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(cursor)
  if (match === null) throw new InvalidError(`not a cursor of a query: ${JSON.stringify(cursor.slice(0, 40))}`)
  return { hold: Number(match[1]), arrival: Number(match[2]), session: Number(match[3]) }
}
