import type { Millis, Serial, SessionId } from '../brand.js'
import { readCommand, writeCommand } from '../codec/commands.js'
import { readHeldLock, writeHeldLock, readList, writeList, readModeAndSlot, writeModeAndSlot } from '../codec/fields.js'
import type { Reader } from '../codec/reader.js'
import { readChange, readResult, writeChange, writeResult } from '../codec/results.js'
import type { Writer } from '../codec/writer.js'
import { CompactingMap, CompactingSet } from '../compacting-map.js'
import type { Acquire, HeldLock } from '../operations.js'
import { assert } from '../assert.js'
import { DEADLINE_DELAY, DEADLINE_SESSION, DEADLINE_WAIT } from './deadlines.js'
import { joinQueues } from './grants.js'
import { addDelay, addHold } from './hold-table.js'
import type { Machine } from './machine.js'
import {
  type Answer,
  type Delay,
  type Hold,
  type Lock,
  newAnswer,
  permitsOf,
  type Register,
  type Session,
  termsOf,
  type Waiter,
} from './elements.js'
import { addSession } from './sessions.js'

/** Format 1 belongs to feature level 1, which older members must be able to read, and format 2 to all later levels. */
export const FORMAT_WHOLE_IDS = 1
export const FORMAT_ID_DISTANCES = 2

export function snapshotFormat(machine: Machine): number {
  return machine.level === 1 ? FORMAT_WHOLE_IDS : FORMAT_ID_DISTANCES
}

/**
 * Codec of the ids in a snapshot: whole in format 1; in format 2 as their distance below the state's counter, because ids have
 * six bytes and most are recent.
 */
export class SnapshotIds {
  readonly #format: number
  readonly #counter: number

  constructor(format: number, counter: number) {
    this.#format = format
    this.#counter = counter
  }

  write(writer: Writer, id: number): void {
    writer.varuint(this.#format === FORMAT_WHOLE_IDS ? id : this.#counter - id)
  }

  read(reader: Reader): number {
    return this.#format === FORMAT_WHOLE_IDS ? reader.varuint() : this.#counter - reader.varuint(this.#counter)
  }

  /** Writes a lock of the hold `id`. Its token is at most that id; for an exclusive lock or a permit, it is that id. */
  writeHeldLock(writer: Writer, held: HeldLock, id: number): void {
    if (this.#format === FORMAT_WHOLE_IDS) return writeHeldLock(writer, held)
    writer.string(held.name)
    writeModeAndSlot(writer, held.mode, held.slot)
    writer.varuint(id - held.token)
  }

  readHeldLock(reader: Reader, id: number): HeldLock {
    if (this.#format === FORMAT_WHOLE_IDS) return readHeldLock(reader)
    const name = reader.string()
    const { mode, slot } = readModeAndSlot(reader)
    const token = (id - reader.varuint(id)) as Serial
    return slot === undefined ? { name, mode, token } : { name, mode, token, slot }
  }
}

/** Writes the size of a semaphore, which is known even if only its queue or a delay keeps it. */
export function writeSemaphore(writer: Writer, lock: Lock): void {
  writer.string(lock.name)
  writer.varuint(lock.permits)
}

export function writeSession(writer: Writer, session: Session, ids: SnapshotIds): void {
  ids.write(writer, session.id)
  writer.hex128(session.nonce)
  writer.hex128(session.secret)
  writer.varuint(session.ttlMs)
  writer.string(session.client)
  writer.bool(session.local)
  writer.varuint(session.expiresAt)
  writer.varuint(session.lowest)
  writer.varuint(session.changeNumber)
  writeList(
    writer,
    [...session.acknowledged].sort((a, b) => a - b),
    (w, request) => w.varuint(request),
  )
  writeList(writer, [...session.changes.values()], writeChange)
}

export function writeHold(writer: Writer, hold: Hold, ids: SnapshotIds): void {
  ids.write(writer, hold.id)
  ids.write(writer, hold.session === undefined ? 0 : hold.session.id)
  writeList(writer, hold.held, (w, held) => ids.writeHeldLock(w, held, hold.id))
  writer.string(hold.client)
  const { data, lockDelayMs, persistent, portable, secret, confirmed } = hold.terms
  writer.bytes(data)
  writer.varuint(lockDelayMs)
  writer.u8((persistent ? 1 : 0) + (portable ? 2 : 0) + (confirmed ? 4 : 0) + (secret === undefined ? 0 : 8))
  if (secret !== undefined) writer.hex128(secret)
  writer.varuint(hold.grantedAt)
  writer.varuint(hold.grantChange)
}

export function writeWaiter(writer: Writer, waiter: Waiter): void {
  writer.varuint(waiter.arrival)
  writer.varuint(waiter.queuedAt)
  writer.varuint(waiter.dueAt + 1)
  writeCommand(writer, { ...waiter.acquire, ack: { lowest: 1, also: [] } })
}

export function writeDelay(writer: Writer, delay: Delay, ids: SnapshotIds): void {
  ids.write(writer, delay.dueId)
  writer.varuint(delay.dueAt)
  writeList(writer, delay.held, (w, held) => {
    w.string(held.name)
    writeModeAndSlot(w, held.mode, held.slot)
  })
}

export function writeAnswers(writer: Writer, session: Session, ids: SnapshotIds): void {
  writeList(
    writer,
    [...session.answers.values()].sort((a, b) => a.request - b.request),
    (w, answer) => {
      w.varuint(answer.request)
      if (answer.waiter !== undefined) {
        w.u8(1)
        w.varuint(answer.waiter.arrival)
      } else if (answer.hold !== undefined) {
        w.u8(2)
        ids.write(w, answer.hold.id)
      } else {
        assert(answer.result !== undefined, `answer ${answer.request} of session ${session.id} is empty`)
        w.u8(3)
        writeResult(w, answer.result)
      }
    },
  )
}

export function writeRegister(writer: Writer, register: Register): void {
  writer.string(register.key)
  writer.bytes(register.value)
  writer.u64(register.version)
  writer.bool(register.lock !== undefined)
  if (register.lock !== undefined) writer.string(register.lock)
}

export function readSession(reader: Reader, machine: Machine, ids: SnapshotIds): Session {
  const id = ids.read(reader) as SessionId
  const nonce = reader.hex128()
  const secret = reader.hex128()
  const ttlMs = reader.varuint() as Millis
  const client = reader.string()
  const local = reader.bool()
  const expiresAt = reader.varuint()
  const lowest = reader.varuint()
  const changeNumber = reader.varuint()
  const acknowledged = readList(reader, 1, (r) => r.varuint())
  const changes = readList(reader, 1, readChange)
  const session: Session = {
    id,
    nonce,
    secret,
    ttlMs,
    client,
    local,
    expiresAt,
    lowest,
    acknowledged: new CompactingSet(),
    answers: new CompactingMap(),
    holds: new CompactingSet(),
    waiters: new CompactingSet(),
    changeNumber,
    changes: new CompactingMap(),
    dueAt: expiresAt,
    dueKind: DEADLINE_SESSION,
    dueId: id,
    duePlace: -1,
  }
  addSession(machine, session)
  for (const request of acknowledged) session.acknowledged.add(request)
  for (const request of session.acknowledged) machine.hashAcknowledged(session, request).endUpdate()
  for (const change of changes) {
    session.changes.set(change.number, change)
    machine.hashChange(session, change).endUpdate()
  }
  return session
}

export function readHold(reader: Reader, machine: Machine, ids: SnapshotIds): void {
  const id = ids.read(reader) as Serial
  const owner = ids.read(reader)
  const session = machine.sessions.get(owner)
  if (owner !== 0 && session === undefined) throw reader.wrong(`a hold of a known session, not of ${owner}`)
  const held = readList(reader, 1, (r) => ids.readHeldLock(r, id))
  const client = reader.string()
  const data = reader.bytes()
  const lockDelayMs = reader.varuint()
  const flags = reader.flags(15)
  const secret = (flags & 8) !== 0 ? reader.hex128() : undefined
  const grantedAt = reader.varuint()
  const grantChange = reader.varuint()
  const [persistent, portable] = [(flags & 1) !== 0, (flags & 2) !== 0]
  const hold: Hold = {
    id,
    session,
    held,
    client,
    terms: termsOf({ data, lockDelayMs, persistent, portable, secret }, (flags & 4) !== 0),
    grantedAt,
    answer: undefined,
    grantChange,
  }
  addHold(machine, hold, locksOf(machine, held))
}

function locksOf(machine: Machine, held: readonly HeldLock[]): Lock[] {
  return held.map((one) => machine.ensureLock(one.name, permitsOf(one)))
}

export function readWaiter(reader: Reader, machine: Machine): void {
  const arrival = reader.varuint()
  const queuedAt = reader.varuint()
  const dueAt = reader.varuint() - 1
  const command = readCommand(reader)
  if (command.kind !== 'acquire') throw reader.wrong(`a waiting acquire, not ${command.kind}`)
  const acquire: Acquire = command
  const session = machine.sessions.get(acquire.session)
  if (session === undefined) throw reader.wrong(`a waiter of a known session, not of ${acquire.session}`)
  const answer = newAnswer(acquire.request)
  const waiter: Waiter = {
    arrival,
    session,
    acquire,
    queuedAt,
    places: acquire.locks.map((request) => machine.ensureLock(request.name, permitsOf(request))),
    nodes: [],
    answer,
    dueAt,
    dueKind: DEADLINE_WAIT,
    dueId: arrival,
    duePlace: -1,
  }
  answer.waiter = waiter
  joinQueues(machine, waiter)
}

export function readDelay(reader: Reader, machine: Machine, ids: SnapshotIds): void {
  const id = ids.read(reader)
  const dueAt = reader.varuint()
  const held = readList(reader, 1, (r): HeldLock => {
    const name = r.string()
    const { mode, slot } = readModeAndSlot(r)
    const token = id as Serial
    return slot === undefined ? { name, mode, token } : { name, mode, token, slot }
  })
  locksOf(machine, held)
  addDelay(machine, { held, dueAt, dueKind: DEADLINE_DELAY, dueId: id, duePlace: -1 })
}

export function readAnswers(reader: Reader, machine: Machine, session: Session | undefined, ids: SnapshotIds): void {
  if (session === undefined) throw reader.wrong('answers of a known session')
  readList(reader, 2, (r) => {
    const request = r.varuint()
    const answer = readAnswer(r, machine, request, ids)
    session.answers.set(request, answer)
    machine.hashAnswer(session, answer).endUpdate()
  })
}

function readAnswer(reader: Reader, machine: Machine, request: number, ids: SnapshotIds): Answer {
  const kind = reader.choice(3, 'the state of an answer')
  if (kind === 1) {
    const arrival = reader.varuint()
    const waiter = machine.waiters.get(arrival)
    if (waiter === undefined) throw reader.wrong(`a known waiter, not ${arrival}`)
    return waiter.answer
  }
  const answer = newAnswer(request)
  if (kind === 2) {
    const id = ids.read(reader)
    const hold = machine.holds.get(id)
    if (hold === undefined) throw reader.wrong(`a known hold, not ${id}`)
    machine.hashOwner(hold).beginUpdate()
    hold.answer = answer
    answer.hold = hold
    machine.hashOwner(hold).endUpdate()
  } else answer.result = readResult(reader)
  return answer
}

export function readRegister(reader: Reader, machine: Machine): void {
  const key = reader.string()
  const value = reader.bytes()
  const version = reader.u64()
  const lock = reader.bool() ? reader.string() : undefined
  const register = { key, value, version, lock }
  machine.registers.set(key, register)
  machine.hashRegister(register).endUpdate()
}
