import {
  type DelayView,
  type Event,
  formatCursor,
  type Grant,
  type HeldLock,
  type HoldView,
  type LockRequest,
  type QueryResult,
  type RegisterView,
  type Serial,
  type SessionView,
  tokenOf,
  type WaiterView,
} from '@leasehold/core'

/* The JSON representation of the state. Ids, tokens and versions are decimal strings; times are whole milliseconds. */

type Json = Record<string, unknown>

const NESTING_MAX = 500

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function idText(epoch: number, serial: Serial): string {
  return tokenOf(epoch, serial).toString()
}

export function lockJson(epoch: number, lock: HeldLock): Json {
  const { name, mode, slot } = lock
  return { name, mode, token: idText(epoch, lock.token), ...(slot === undefined ? {} : { slot }) }
}

/** The response to an acquire or adopt. `token` is that of the first lock that is not shared, or of the first lock. */
export function grantJson(epoch: number, grant: Grant): Json {
  const { locks } = grant
  const leading = locks.find((lock) => lock.mode !== 'shared') ?? (locks[0] as HeldLock)
  const slots = locks.filter((lock) => lock.slot !== undefined)
  return {
    id: idText(epoch, grant.hold),
    token: idText(epoch, leading.token),
    ...(leading.slot === undefined ? {} : { slot: leading.slot }),
    names: locks.map((lock) => lock.name),
    tokens: Object.fromEntries(locks.map((lock) => [lock.name, idText(epoch, lock.token)])),
    ...(slots.length === 0 ? {} : { slots: Object.fromEntries(slots.map((lock) => [lock.name, lock.slot])) }),
    locks: locks.map((lock) => lockJson(epoch, lock)),
  }
}

/** Bytes as a string if they are UTF-8, as base64 otherwise. */
function bytesJson(name: string, bytes: Uint8Array): Json {
  if (bytes.length === 0) return {}
  const text = utf8(bytes)
  return text === undefined ? { [`${name}Base64`]: Buffer.from(bytes).toString('base64') } : { [name]: text }
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** A register with its value: parsed if it is JSON, a string if it is UTF-8, base64 otherwise, named by `encoding`. */
export function registerJson(view: RegisterView): Json {
  const { key, version, lock } = view
  return { key, version: String(version), ...(lock === undefined ? {} : { lock }), ...valueJson(view.value) }
}

function valueJson(bytes: Uint8Array): Json {
  const text = utf8(bytes)
  if (text === undefined) return { value: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
  if (isDeep(bytes)) return { value: text, encoding: 'text' }
  try {
    return { value: JSON.parse(text) as unknown, encoding: 'json' }
  } catch {
    return { value: text, encoding: 'text' }
  }
}

/** Whether brackets nest deeper than {@link NESTING_MAX}: parsing and printing such JSON could overflow the stack. */
function isDeep(bytes: Uint8Array): boolean {
  let depth = 0
  for (const byte of bytes) {
    if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    if (depth > NESTING_MAX) return true
  }
  return false
}

function holdJson(epoch: number, view: HoldView): Json {
  const { client, persistent, ageMs, remainingMs } = view
  return {
    hold: idText(epoch, view.id),
    locks: view.locks.map((lock) => lockJson(epoch, lock)),
    session: view.session === undefined ? null : idText(epoch, view.session),
    client,
    persistent,
    ageMs,
    remainingMs: remainingMs ?? null,
    ...bytesJson('data', view.data),
  }
}

function waiterJson(epoch: number, view: WaiterView): Json {
  return {
    session: idText(epoch, view.session),
    request: view.request,
    client: view.client,
    locks: view.locks.map((lock: LockRequest) => ({ name: lock.name, mode: lock.mode })),
    waitingMs: view.waitingMs,
    remainingMs: view.remainingMs ?? null,
  }
}

function delayJson(view: DelayView): Json {
  const { name, mode, slot, remainingMs } = view
  return { name, mode, ...(slot === undefined ? {} : { slot }), remainingMs }
}

export function sessionJson(epoch: number, view: SessionView): Json {
  const { client, ttlMs, remainingMs, holds, waiters } = view
  return { session: idText(epoch, view.id), client, ttlMs, remainingMs, holds, waiters }
}

/** One page of the state. `at` is the cursor from which a watch delivers everything after this page. */
export function queryJson(epoch: number, result: QueryResult): Json {
  return {
    held: result.held.map((view) => holdJson(epoch, view)),
    pending: result.pending.map((view) => waiterJson(epoch, view)),
    delays: result.delays.map(delayJson),
    sessions: result.sessions.map((view) => sessionJson(epoch, view)),
    next: result.next ?? null,
    at: formatCursor(result.at),
  }
}

/** The `data` of a server-sent event; the kind of the event is its name. */
export function eventJson(epoch: number, event: Event): Json {
  switch (event.kind) {
    case 'held':
      return {
        hold: idText(epoch, event.grant.hold),
        locks: event.grant.locks.map((lock) => lockJson(epoch, lock)),
        session: idText(epoch, event.session),
        client: event.client,
      }
    case 'freed':
      return {
        hold: idText(epoch, event.hold),
        locks: event.locks.map((lock) => lockJson(epoch, lock)),
        reason: event.reason,
        actor: event.actor,
        text: event.text,
      }
    case 'queued':
      return { session: idText(epoch, event.session), request: event.request, names: event.names }
    case 'unqueued':
      return { session: idText(epoch, event.session), request: event.request, names: event.names, reason: event.reason }
    case 'sessionOpened':
      return { session: idText(epoch, event.session), client: event.client }
    case 'sessionEnded':
      return { session: idText(epoch, event.session), reason: event.reason }
    case 'put':
    case 'deleted':
      return { key: event.key, version: String(event.version) }
  }
}
