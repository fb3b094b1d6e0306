import type { DelayView, HoldView, Query, QueryResult, RegisterView, SessionView, WaiterView } from '../operations.js'
import {
  type Mutable,
  readCursor,
  readHeldLocks,
  readList,
  readLockRequest,
  readMillis,
  readModeAndSlot,
  readSerial,
  writeCursor,
  writeHeldLock,
  writeList,
  writeLockRequest,
  writeModeAndSlot,
  writeSerial,
} from './fields.js'
import type { Reader } from './reader.js'
import type { Writer } from './writer.js'

const HOLD_SESSION = 1
const HOLD_REMAINING = 2
const HOLD_PERSISTENT = 4
const QUERY_PREFIX = 1
const QUERY_NAME = 2
const QUERY_LIMIT = 4
const QUERY_CURSOR = 8

export function writeHoldView(writer: Writer, view: HoldView): void {
  const { session, remainingMs } = view
  writer.u8(
    (session === undefined ? 0 : HOLD_SESSION) |
      (remainingMs === undefined ? 0 : HOLD_REMAINING) |
      (view.persistent ? HOLD_PERSISTENT : 0),
  )
  writeSerial(writer, view.id)
  writeList(writer, view.locks, writeHeldLock)
  if (session !== undefined) writeSerial(writer, session)
  writer.string(view.client)
  writer.bytes(view.data)
  writer.varuint(view.ageMs)
  if (remainingMs !== undefined) writer.varuint(remainingMs)
}

export function readHoldView(reader: Reader): HoldView {
  const flags = reader.flags(HOLD_SESSION | HOLD_REMAINING | HOLD_PERSISTENT)
  return {
    id: readSerial(reader),
    locks: readHeldLocks(reader),
    session: flags & HOLD_SESSION ? readSerial(reader) : undefined,
    client: reader.string(),
    data: reader.bytes(),
    persistent: (flags & HOLD_PERSISTENT) !== 0,
    ageMs: readMillis(reader),
    remainingMs: flags & HOLD_REMAINING ? readMillis(reader) : undefined,
  }
}

export function writeWaiterView(writer: Writer, view: WaiterView): void {
  writeSerial(writer, view.session)
  writer.varuint(view.request)
  writer.string(view.client)
  writeList(writer, view.locks, writeLockRequest)
  writer.varuint(view.waitingMs)
  writer.bool(view.remainingMs !== undefined)
  if (view.remainingMs !== undefined) writer.varuint(view.remainingMs)
}

export function readWaiterView(reader: Reader): WaiterView {
  return {
    session: readSerial(reader),
    request: reader.varuint(),
    client: reader.string(),
    locks: readList(reader, 2, readLockRequest),
    waitingMs: readMillis(reader),
    remainingMs: reader.bool() ? readMillis(reader) : undefined,
  }
}

export function writeSessionView(writer: Writer, view: SessionView): void {
  writeSerial(writer, view.id)
  writer.string(view.client)
  writer.varuint(view.ttlMs)
  writer.varuint(view.remainingMs)
  writer.varuint(view.holds)
  writer.varuint(view.waiters)
}

export function readSessionView(reader: Reader): SessionView {
  return {
    id: readSerial(reader),
    client: reader.string(),
    ttlMs: readMillis(reader),
    remainingMs: readMillis(reader),
    holds: reader.varuint(),
    waiters: reader.varuint(),
  }
}

export function writeDelayView(writer: Writer, view: DelayView): void {
  writer.string(view.name)
  writeModeAndSlot(writer, view.mode, view.slot)
  writer.varuint(view.remainingMs)
}

export function readDelayView(reader: Reader): DelayView {
  const name = reader.string()
  const { mode, slot } = readModeAndSlot(reader)
  const remainingMs = readMillis(reader)
  return slot === undefined ? { name, mode, remainingMs } : { name, mode, slot, remainingMs }
}

export function writeQuery(writer: Writer, query: Query): void {
  const { prefix, name, limit, cursor } = query
  writer.u8(
    (prefix === undefined ? 0 : QUERY_PREFIX) |
      (name === undefined ? 0 : QUERY_NAME) |
      (limit === undefined ? 0 : QUERY_LIMIT) |
      (cursor === undefined ? 0 : QUERY_CURSOR),
  )
  if (prefix !== undefined) writer.string(prefix)
  if (name !== undefined) writer.string(name)
  if (limit !== undefined) writer.varuint(limit)
  if (cursor !== undefined) writer.string(cursor)
}

export function readQuery(reader: Reader): Query {
  const flags = reader.flags(QUERY_PREFIX | QUERY_NAME | QUERY_LIMIT | QUERY_CURSOR)
  const query: Mutable<Query> = {}
  if (flags & QUERY_PREFIX) query.prefix = reader.string()
  if (flags & QUERY_NAME) query.name = reader.string()
  if (flags & QUERY_LIMIT) query.limit = reader.varuint()
  if (flags & QUERY_CURSOR) query.cursor = reader.string()
  return query
}

export function writeQueryResult(writer: Writer, answer: QueryResult): void {
  writeList(writer, answer.held, writeHoldView)
  writeList(writer, answer.pending, writeWaiterView)
  writeList(writer, answer.delays, writeDelayView)
  writeList(writer, answer.sessions, writeSessionView)
  writer.bool(answer.next !== undefined)
  if (answer.next !== undefined) writer.string(answer.next)
  writeCursor(writer, answer.at)
}

export function readQueryResult(reader: Reader): QueryResult {
  return {
    held: readList(reader, 6, readHoldView),
    pending: readList(reader, 6, readWaiterView),
    delays: readList(reader, 3, readDelayView),
    sessions: readList(reader, 6, readSessionView),
    next: reader.bool() ? reader.string() : undefined,
    at: readCursor(reader),
  }
}

export function writeRegisterView(writer: Writer, view: RegisterView): void {
  writer.string(view.key)
  writer.bytes(view.value)
  writer.u64(view.version)
  writer.bool(view.lock !== undefined)
  if (view.lock !== undefined) writer.string(view.lock)
}

export function readRegisterView(reader: Reader): RegisterView {
  return {
    key: reader.string(),
    value: reader.bytes(),
    version: reader.u64(),
    lock: reader.bool() ? reader.string() : undefined,
  }
}
