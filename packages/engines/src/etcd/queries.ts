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

/** Leases that are asked for at once how long they last. */
const LEASES_AT_ONCE = 32

interface Found<T> {
  readonly request: string
  readonly record: T
  readonly kv: KeyValue
}

/**
 * What is held and what waits, at one revision, a page at a time. Ages are by the clocks of those who took the locks. A
 * session's row counts the holds and waiters that the query covers.
 */
export async function queryStore(
  store: Store,
  query: Query,
  options: { stale: boolean; timeoutMs: number },
): Promise<QueryResult & { epoch: number }> {
  const limit = query.limit ?? QUERY_LIMIT_DEFAULT
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > QUERY_LIMIT_MAX) {
    throw new InvalidError(`a query's limit is 1 to ${QUERY_LIMIT_MAX}, not ${limit}`)
  }
  const page = pageOf(query.cursor)
  const isEverything = query.name === undefined && !query.prefix
  const { layout } = store
  const read = (range: RangeRequest) => ({ range: { ...range, ...(options.stale ? { serializable: true } : {}) } })
  const span = query.name === undefined ? layout.locks(query.prefix) : layout.lock(query.name)
  const answer = await store.client.txn(
    { compare: [], success: [read(span), read(layout.sessions)], failure: [] },
    { timeoutMs: options.timeoutMs, repeatable: true },
  )
  const wanted = (name: string) => query.name !== undefined || inPrefix(query.prefix ?? '', name)
  const state = sort(store, kvsOf(answer.responses[0]), wanted)
  const sessions = sessionsOf(store, kvsOf(answer.responses[1]))
  const held = take(
    [...state.holds.values()].map(held_),
    (one) => one.serial > page.hold,
    limit,
    (one) => one.serial,
  )
  const pending = take(
    [...state.waiters.values()],
    (one) => one.kv.createRevision > page.arrival,
    limit,
    (one) => one.kv.createRevision,
  )
  const listed = take(
    isEverything ? [...sessions.values()] : [],
    (one) => one.serial > page.session,
    limit,
    (one) => one.serial,
  )
  const shown = new Set(listed.items)
  for (const { record } of [...held.items, ...pending.items]) {
    const session = sessions.get(record.sid)
    if (session) shown.add(session)
  }
  const leases = new Map<bigint, number>()
  for (const { kv } of shown) leases.set(kv.lease, 0)
  for (const { kv } of state.delays.values()) leases.set(kv.lease, 0)
  await remaining(store, leases, options.timeoutMs)
  const now = store.platform.wallMs()
  const count = (sid: string, found: Iterable<Found<RequestRecord>>) =>
    [...found].filter(({ record }) => record.sid === sid).length
  const more = held.more || pending.more || listed.more
  const next = [
    held.items.at(-1)?.serial ?? page.hold,
    pending.items.at(-1)?.kv.createRevision ?? page.arrival,
    listed.items.at(-1)?.serial ?? page.session,
  ]
  const leftOf = (sid: string) => leases.get(sessions.get(sid)?.kv.lease ?? -1n) ?? 0
  return {
    held: held.items.map(
      ({ record, serial, view, kv }): HoldView => ({
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
        remainingMs: kv.lease === 0n ? undefined : (leftOf(record.sid) as Millis),
      }),
    ),
    pending: pending.items.map(
      ({ record }): WaiterView => ({
        session: serialPart(record.session) as number as SessionId,
        request: record.number,
        client: record.client,
        locks: record.locks,
        waitingMs: since(now, record.at),
        remainingMs: record.waitMs === null ? undefined : (Math.max(0, record.at + record.waitMs - now) as Millis),
      }),
    ),
    delays: [...state.delays.values()].map(({ name, mode, slot, kv }) => ({
      name,
      mode,
      ...(slot === undefined ? {} : { slot }),
      remainingMs: (leases.get(kv.lease) ?? 0) as Millis,
    })),
    sessions: [...shown]
      .sort((a, b) => a.serial - b.serial)
      .map(
        (session): SessionView => ({
          id: session.serial as SessionId,
          client: session.record.client,
          ttlMs: session.record.ttlMs as Millis,
          remainingMs: (leases.get(session.kv.lease) ?? 0) as Millis,
          holds: count(session.sid, state.holds.values()),
          waiters: count(session.sid, state.waiters.values()),
        }),
      ),
    next: more ? next.join('.') : undefined,
    at: { epoch: store.epoch, index: answer.header.revision as Index, ordinal: LAST_ORDINAL },
    epoch: store.epoch,
  }
}

function held_(found: Found<HoldRecord>) {
  const view = heldView(found.record, found.kv.createRevision)
  return { ...found, view, serial: view.serial as number }
}

interface DelayFound {
  readonly name: string
  readonly mode: Mode
  readonly slot: number | undefined
  readonly kv: KeyValue
}

/** Holds and waiters by request, and delays whose hold has ended. */
function sort(store: Store, kvs: readonly KeyValue[], wanted: (name: string) => boolean) {
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

function take<T>(all: readonly T[], wanted: (one: T) => boolean, limit: number, order: (one: T) => number) {
  const items = all.filter(wanted).sort((a, b) => order(a) - order(b))
  return { items: items.slice(0, limit), more: items.length > limit }
}

async function remaining(store: Store, leases: Map<bigint, number>, timeoutMs: number): Promise<void> {
  const ids = [...leases.keys()].filter((id) => id !== 0n)
  for (let at = 0; at < ids.length; at += LEASES_AT_ONCE) {
    await Promise.all(
      ids.slice(at, at + LEASES_AT_ONCE).map(async (id) => {
        leases.set(id, await store.client.leaseRemaining(id, timeoutMs))
      }),
    )
  }
}

function since(now: number, then: number): Millis {
  return Math.max(0, now - then) as Millis
}

function pageOf(cursor: string | undefined): { hold: number; arrival: number; session: number } {
  if (cursor === undefined) return { hold: 0, arrival: 0, session: 0 }
  const match = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/.exec(cursor)
  if (match === null) throw new InvalidError(`not a cursor of a query: ${JSON.stringify(cursor.slice(0, 40))}`)
  return { hold: Number(match[1]), arrival: Number(match[2]), session: Number(match[3]) }
}
