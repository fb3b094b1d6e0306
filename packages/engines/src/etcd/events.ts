import {
  type Cursor,
  EpochChangedError,
  type EndReason,
  type Event,
  type HeldLock,
  type HoldId,
  type Index,
  LAST_ORDINAL,
  type LeaseholdError,
  type SessionId,
  matchesPrefix,
  WatchError,
} from '@leasehold/core'
import {
  type EpochRecord,
  heldView,
  type HoldRecord,
  idOf,
  type ParsedKey,
  type RequestRecord,
  recordOf,
  serialOf,
  serialPart,
  type SessionRecord,
  type EndReasonRecord,
} from './layout.js'
import type { KeyValue, WatchEventMessage } from './api/messages.js'
import { registerOf } from './registers.js'
import type { Store } from './store.js'

/** Events that may wait for a slow reader; beyond it the watch ends with `gap`. */
export const BUFFER_MAX = 10_000

export interface Item {
  readonly cursor: Cursor
  readonly event: Event
}

/** Events that wait for the reader of a watch. */
export class EventBuffer {
  readonly #prefix: string
  readonly #from: Cursor
  #items: Item[] = []
  #error: LeaseholdError | undefined
  #stopped = false
  #wake: () => void = () => {}

  constructor(prefix: string, from: Cursor) {
    this.#prefix = prefix
    this.#from = from
  }

  stop(): void {
    this.#stopped = true
    this.#wake()
  }

  fail(error: LeaseholdError): void {
    this.#error ??= error
    this.#wake()
  }

  /** Adds the events of one revision. */
  add(events: readonly Event[], index: number): void {
    // After a lost event, later ones must not arrive before the error.
    if (this.#error) return
    const { epoch, index: fromIndex, ordinal: fromOrdinal } = this.#from
    for (const [ordinal, event] of events.entries()) {
      if (index === fromIndex && ordinal <= fromOrdinal) continue
      if (!matchesPrefix(this.#prefix, event)) continue
      if (this.#items.length >= BUFFER_MAX) {
        return this.fail(new WatchError(`the watch fell behind: ${BUFFER_MAX} events wait for their reader`))
      }
      this.#items.push({ cursor: { epoch, index: index as Index, ordinal }, event })
    }
  }

  wake(): void {
    this.#wake()
  }

  /** The events; ends after `stop`, throws after `fail` when what arrived before has been read. */
  async *items(): AsyncGenerator<Item, void, void> {
    while (!this.#stopped) {
      const items = this.#items
      this.#items = []
      for (const item of items) {
        yield item
        if (this.#stopped) return
      }
      if (this.#items.length > 0) continue
      if (this.#error) throw this.#error
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        if (this.#stopped || this.#error || this.#items.length > 0) resolve()
      })
    }
  }
}

/** A watch of etcd, as events of locks, sessions and registers. */
export async function* watchStore(
  store: Store,
  options: { readonly prefix: string; readonly from: Cursor; readonly signal: AbortSignal },
): AsyncGenerator<Item, void, void> {
  const { prefix, from, signal } = options
  if (from.epoch !== store.epoch)
    throw new EpochChangedError(`the cursor is of epoch ${from.epoch}, the present one is ${store.epoch}`)
  const buffer = new EventBuffer(prefix, from)
  const stop = () => buffer.stop()
  if (signal.aborted) stop()
  const start = from.ordinal >= LAST_ORDINAL ? from.index + 1 : from.index
  const unwatch = store.client.watches.add(
    { ...store.layout.everything, from: Math.max(1, start), prevKv: true },
    {
      events: (events) => {
        try {
          for (const [revision, group] of byRevision(events)) buffer.add(eventsOf(store, group), revision)
        } catch (cause) {
          buffer.fail(
            cause instanceof WatchError || cause instanceof EpochChangedError
              ? cause
              : new WatchError(String(cause), { cause }),
          )
        }
        buffer.wake()
      },
      gap: (compacted) => buffer.fail(new WatchError(`etcd has compacted the events up to revision ${compacted}`)),
    },
  )
  signal.addEventListener('abort', stop)
  try {
    yield* buffer.items()
  } finally {
    signal.removeEventListener('abort', stop)
    unwatch()
  }
}

function byRevision(events: readonly WatchEventMessage[]): Map<number, WatchEventMessage[]> {
  const groups = new Map<number, WatchEventMessage[]>()
  for (const event of events) {
    const group = groups.get(event.kv.modRevision)
    if (group) group.push(event)
    else groups.set(event.kv.modRevision, [event])
  }
  return groups
}

interface Change {
  readonly parsed: ParsedKey
  readonly isPut: boolean
  readonly kv: KeyValue
  /** What the key had before; a deletion has always one. */
  readonly before: KeyValue | undefined
}

/** The events of one revision, in a fixed order: what ends, what begins to hold, what begins to wait, and the rest. */
export function eventsOf(store: Store, group: readonly WatchEventMessage[]): Event[] {
  const changes: Change[] = []
  for (const { type, kv, prevKv } of group) {
    const parsed = store.layout.parse(kv.key)
    // A raised base changes no epoch.
    if (parsed?.kind === 'epoch' && type === 0 && recordOf<EpochRecord>(kv).epoch === store.epoch) continue
    if (parsed?.kind === 'epoch') throw new EpochChangedError('the epoch was raised')
    if (parsed === undefined) continue
    if (type === 1 && prevKv === undefined) throw new WatchError('what was deleted is compacted away in etcd')
    changes.push({ parsed, isPut: type === 0, kv, before: prevKv })
  }
  const words = new Map<string, EndReasonRecord>()
  const ended = new Map<string, EndReason>()
  const sessions: Event[] = []
  for (const change of changes) {
    if (change.parsed.kind === 'end-reason' && change.isPut) {
      const word = recordOf<EndReasonRecord>(change.kv)
      words.set(word.request, word)
    }
    if (change.parsed.kind === 'session') sessions.push(...sessionEvents(change, ended))
  }
  const moved = new Set(changes.filter(({ parsed }) => parsed.kind === 'h').map(({ parsed }) => parsed.request))
  const freed: Event[] = []
  const held: Event[] = []
  const queued: Event[] = []
  const others: Event[] = []
  for (const change of changes) {
    const { kind, request, name } = change.parsed
    if (kind === 'h' && !change.isPut) freed.push(...freedEvents(change, words.get(request), ended))
    else if (kind === 'h') held.push(...heldEvents(change))
    else if (kind === 'q' && !moved.has(request)) queued.push(...waitEvents(change, words.get(request), ended))
    else if (kind === 'register') others.push(registerEvent(change, name))
  }
  return [...freed, ...sessions, ...held, ...queued, ...others]
}

function sessionEvents({ isPut, kv, before }: Change, ended: Map<string, EndReason>): Event[] {
  const record = recordOf<SessionRecord>(isPut ? kv : (before as KeyValue))
  const sid = kv.key.toString('utf8').split('/').at(-1) as string
  const session = serialOf(record, (isPut ? kv : (before as KeyValue)).createRevision) as number as SessionId
  const reason: EndReason = record.state === 'open' ? 'expired' : record.by === 'operator' ? 'operator' : 'closed'
  if (!isPut) {
    ended.set(sid, reason)
    return record.state === 'open' ? [{ kind: 'sessionEnded', session, reason }] : []
  }
  if (record.state === 'closed') return [{ kind: 'sessionEnded', session, reason }]
  return kv.createRevision === kv.modRevision ? [{ kind: 'sessionOpened', session, client: record.client }] : []
}

function freedEvents(
  { parsed, before }: Change,
  word: EndReasonRecord | undefined,
  ended: Map<string, EndReason>,
): Event[] {
  const kv = before as KeyValue
  const record = recordOf<HoldRecord>(kv)
  if (record.locks[0]?.name !== parsed.name) return []
  const told = word?.what === 'stolen' || word?.what === 'moved' ? word : undefined
  const reason: EndReason = (told?.what as EndReason | undefined) ?? ended.get(record.sid) ?? 'released'
  const { serial, locks } = viewed(record, kv.createRevision)
  return [{ kind: 'freed', hold: serial, locks, reason, actor: told?.actor ?? '', text: told?.text ?? '' }]
}

function heldEvents({ parsed, kv }: Change): Event[] {
  const record = recordOf<HoldRecord>(kv)
  // Written again, it was held before: a persistent hold leaves its session.
  if (record.locks[0]?.name !== parsed.name || kv.createRevision !== kv.modRevision) return []
  const { serial, locks } = viewed(record, kv.createRevision)
  const session = serialPart(record.session) as number as SessionId
  return [{ kind: 'held', grant: { hold: serial, locks }, session, client: record.client }]
}

function waitEvents(
  { parsed, isPut, kv, before }: Change,
  word: EndReasonRecord | undefined,
  ended: Map<string, EndReason>,
): Event[] {
  const record = recordOf<RequestRecord>(isPut ? kv : (before as KeyValue))
  if (record.locks[0]?.name !== parsed.name) return []
  const session = serialPart(record.session) as number as SessionId
  const common = { session, request: record.number, names: record.locks.map(({ name }) => name) }
  if (isPut) return [{ kind: 'queued', ...common }]
  const reason = ended.has(record.sid) ? 'session-ended' : word?.what === 'timeout' ? 'timeout' : 'cancelled'
  return [{ kind: 'unqueued', ...common, reason }]
}

function registerEvent({ isPut, kv, before }: Change, key: string): Event {
  if (isPut) return { kind: 'put', key, version: registerOf(kv).version }
  const { version, base } = registerOf(before as KeyValue)
  return { kind: 'deleted', key, version: idOf({ epoch: Number(version >> 48n), base }, kv.modRevision) }
}

function viewed(record: HoldRecord, revision: number): { serial: HoldId; locks: HeldLock[] } {
  const view = heldView(record, revision)
  const locks = view.locks.map(({ name, mode, serial, slot }) => ({
    name,
    mode,
    token: serial,
    ...(slot === undefined ? {} : { slot }),
  }))
  return { serial: view.serial as number as HoldId, locks }
}
