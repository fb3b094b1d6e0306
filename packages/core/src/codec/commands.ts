import type { HoldId, Millis } from '../brand.js'
import { InvalidError } from '../errors.js'
import type {
  Acquire,
  Adopt,
  Cancel,
  CloseSession,
  Command,
  Configure,
  Delete,
  Entry,
  Hex128,
  Limits,
  Numbered,
  OpenSession,
  Put,
  Release,
  Renew,
  Steal,
} from '../operations.js'
import { WAIT_FOREVER } from '../operations.js'
import {
  type Mutable,
  readAck,
  readFence,
  readList,
  readLockRequest,
  readMillis,
  readSerial,
  writeAck,
  writeFence,
  writeList,
  writeLockRequest,
  writeSerial,
} from './fields.js'
import { Reader } from './reader.js'
import { CLOSERS } from './enum-codec.js'
import { Writer } from './writer.js'

/** First byte of a command. Part of the format: never change or reuse a number. */
export const COMMAND_KINDS = {
  openSession: 1,
  renew: 2,
  closeSession: 3,
  acquire: 4,
  cancel: 5,
  release: 6,
  adopt: 7,
  steal: 8,
  put: 9,
  delete: 10,
  configure: 11,
} as const satisfies Record<Command['kind'], number>

/** The fields of {@link Limits} in the order of their bits. Part of the format: only ever add at the end. */
export const LIMIT_FIELDS = [
  'sessions',
  'holds',
  'holdsPerSession',
  'waitersPerLock',
  'locksPerAcquire',
  'dataBytes',
  'registers',
  'registerBytes',
  'ttlMinMs',
  'ttlMaxMs',
  'lockDelayMaxMs',
] as const satisfies readonly (keyof Limits)[]

// Bits of the flags bytes. The first three are the same in every command that may have no session.
const HAS_SESSION = 1
const HAS_REQUEST = 2
const HAS_ACK = 4
const RENEW_SEEN = 1
const RENEW_ACK = 2
const ACQUIRE_PERSISTENT = 1
const ACQUIRE_PORTABLE = 2
const ACQUIRE_FOREVER = 4
const ACQUIRE_DELAY = 8
const ACQUIRE_SECRET = 16
const ACQUIRE_DATA = 32
const RELEASE_SECRET = 8
const WRITE_VERSION = 8
const WRITE_FENCE = 16
const CONFIGURE_LIMITS = 1
const CONFIGURE_LEVEL = 2
const CONFIGURE_PERMITS = 4
const CONFIGURE_FLOOR = 8

const NO_DATA = new Uint8Array(0)

export function encodeEntry(entry: Entry): Uint8Array {
  const writer = new Writer()
  writeEntry(writer, entry)
  return writer.take()
}

/** @throws CodecError */
export function decodeEntry(bytes: Uint8Array): Entry {
  const reader = new Reader(bytes)
  const entry = readEntry(reader)
  reader.finish()
  return entry
}

export function writeEntry(writer: Writer, entry: Entry): void {
  writer.varuint(entry.at)
  writeList(writer, entry.commands, writeCommand)
}

export function readEntry(reader: Reader): Entry {
  return { at: readMillis(reader), commands: readList(reader, 2, readCommand) }
}

/** Reset before each use. */
const scratch = new Writer(1024)

export function encodeCommand(command: Command): Uint8Array {
  scratch.reset()
  writeCommand(scratch, command)
  return scratch.take()
}

/** @throws CodecError */
export function decodeCommand(bytes: Uint8Array): Command {
  const reader = new Reader(bytes)
  const command = readCommand(reader)
  reader.finish()
  return command
}

export function writeCommand(writer: Writer, command: Command): void {
  const number = COMMAND_KINDS[command.kind]
  if (number === undefined) throw new InvalidError(`not a kind of command: ${JSON.stringify(command.kind)}`)
  writer.u8(number)
  switch (command.kind) {
    case 'acquire':
      return writeAcquire(writer, command)
    case 'release':
      return writeRelease(writer, command)
    case 'renew':
      return writeRenew(writer, command)
    case 'openSession':
      return writeOpenSession(writer, command)
    case 'closeSession':
      return writeCloseSession(writer, command)
    case 'cancel':
      return writeCancel(writer, command)
    case 'adopt':
      return writeAdopt(writer, command)
    case 'steal':
      return writeSteal(writer, command)
    case 'put':
      return writePut(writer, command)
    case 'delete':
      return writeDelete(writer, command)
    case 'configure':
      return writeConfigure(writer, command)
  }
}

export function readCommand(reader: Reader): Command {
  const number = reader.u8()
  switch (number) {
    case COMMAND_KINDS.acquire:
      return readAcquire(reader)
    case COMMAND_KINDS.release:
      return readRelease(reader)
    case COMMAND_KINDS.renew:
      return readRenew(reader)
    case COMMAND_KINDS.openSession:
      return readOpenSession(reader)
    case COMMAND_KINDS.closeSession:
      return readCloseSession(reader)
    case COMMAND_KINDS.cancel:
      return readCancel(reader)
    case COMMAND_KINDS.adopt:
      return readAdopt(reader)
    case COMMAND_KINDS.steal:
      return readSteal(reader)
    case COMMAND_KINDS.put:
      return readPut(reader)
    case COMMAND_KINDS.delete:
      return readDelete(reader)
    case COMMAND_KINDS.configure:
      return readConfigure(reader)
    default:
      throw reader.wrong(`a kind of command, not ${number}`, reader.offset - 1)
  }
}

function writeOpenSession(writer: Writer, command: OpenSession): void {
  writer.hex128(command.nonce)
  writer.hex128(command.secret)
  writer.varuint(command.ttlMs)
  writer.string(command.client)
  writer.bool(command.local)
}

function readOpenSession(reader: Reader): OpenSession {
  return {
    kind: 'openSession',
    nonce: reader.hex128(),
    secret: reader.hex128(),
    ttlMs: readMillis(reader),
    client: reader.string(),
    local: reader.bool(),
  }
}

function writeRenew(writer: Writer, command: Renew): void {
  const { seen, ack } = command
  writer.u8((seen === undefined ? 0 : RENEW_SEEN) | (ack === undefined ? 0 : RENEW_ACK))
  writeSerial(writer, command.session)
  if (seen !== undefined) writer.varuint(seen)
  if (ack !== undefined) writeAck(writer, ack)
}

function readRenew(reader: Reader): Renew {
  const flags = reader.flags(RENEW_SEEN | RENEW_ACK)
  const command: Mutable<Renew> = { kind: 'renew', session: readSerial(reader) }
  if (flags & RENEW_SEEN) command.seen = reader.varuint()
  if (flags & RENEW_ACK) command.ack = readAck(reader)
  return command
}

function writeCloseSession(writer: Writer, command: CloseSession): void {
  writeSerial(writer, command.session)
  CLOSERS.write(writer, command.by)
  writer.string(command.reason)
}

function readCloseSession(reader: Reader): CloseSession {
  return { kind: 'closeSession', session: readSerial(reader), by: CLOSERS.read(reader), reason: reader.string() }
}

function writeNumbered(writer: Writer, command: Numbered): void {
  writeSerial(writer, command.session)
  writer.varuint(command.request)
  writeAck(writer, command.ack)
}

function writeAcquire(writer: Writer, command: Acquire): void {
  const { waitMs, lockDelayMs, secret, data } = command
  let flags = command.persistent ? ACQUIRE_PERSISTENT : 0
  if (command.portable) flags |= ACQUIRE_PORTABLE
  if (waitMs === WAIT_FOREVER) flags |= ACQUIRE_FOREVER
  if (lockDelayMs !== 0) flags |= ACQUIRE_DELAY
  if (secret !== undefined) flags |= ACQUIRE_SECRET
  if (data.length !== 0) flags |= ACQUIRE_DATA
  writer.u8(flags)
  writeNumbered(writer, command)
  writeList(writer, command.locks, writeLockRequest)
  if (waitMs !== WAIT_FOREVER) writer.varuint(waitMs)
  if (lockDelayMs !== 0) writer.varuint(lockDelayMs)
  if (secret !== undefined) writer.hex128(secret)
  if (data.length !== 0) writer.bytes(data)
}

function readAcquire(reader: Reader): Acquire {
  const flags = reader.flags(63)
  const command: Mutable<Acquire> = {
    kind: 'acquire',
    session: readSerial(reader),
    request: reader.varuint(),
    ack: readAck(reader),
    locks: readList(reader, 2, readLockRequest),
    waitMs: flags & ACQUIRE_FOREVER ? WAIT_FOREVER : reader.varuint(),
    lockDelayMs: flags & ACQUIRE_DELAY ? positive(reader) : (0 as Millis),
    persistent: (flags & ACQUIRE_PERSISTENT) !== 0,
    portable: (flags & ACQUIRE_PORTABLE) !== 0,
    data: NO_DATA,
  }
  if (flags & ACQUIRE_SECRET) command.secret = reader.hex128()
  if (flags & ACQUIRE_DATA) command.data = someBytes(reader)
  return command
}

/** Reads a value that is written only if it is above 0. */
function positive(reader: Reader): Millis {
  const start = reader.offset
  const value = readMillis(reader)
  if (value === 0) throw reader.wrong('a number above 0', start)
  return value
}

/** Reads bytes that are written only if there are any. */
function someBytes(reader: Reader): Uint8Array {
  const start = reader.offset
  const value = reader.bytes()
  if (value.length === 0) throw reader.wrong('at least one byte', start)
  return value
}

function writeCancel(writer: Writer, command: Cancel): void {
  writeNumbered(writer, command)
  writer.varuint(command.target)
}

function readCancel(reader: Reader): Cancel {
  return {
    kind: 'cancel',
    session: readSerial(reader),
    request: reader.varuint(),
    ack: readAck(reader),
    target: reader.varuint(),
  }
}

/** The flags of the parts of {@link Numbered} that are present. */
function numberedFlags(command: Partial<Numbered>): number {
  return (
    (command.session === undefined ? 0 : HAS_SESSION) |
    (command.request === undefined ? 0 : HAS_REQUEST) |
    (command.ack === undefined ? 0 : HAS_ACK)
  )
}

function writePartlyNumbered(writer: Writer, command: Partial<Numbered>): void {
  if (command.session !== undefined) writeSerial(writer, command.session)
  if (command.request !== undefined) writer.varuint(command.request)
  if (command.ack !== undefined) writeAck(writer, command.ack)
}

function readPartlyNumbered(reader: Reader, flags: number, command: Partial<Mutable<Numbered>>): void {
  if (flags & HAS_SESSION) command.session = readSerial(reader)
  if (flags & HAS_REQUEST) command.request = reader.varuint()
  if (flags & HAS_ACK) command.ack = readAck(reader)
}

function writeRelease(writer: Writer, command: Release): void {
  const { secret } = command
  writer.u8(numberedFlags(command) | (secret === undefined ? 0 : RELEASE_SECRET))
  writeSerial(writer, command.hold)
  writePartlyNumbered(writer, command)
  if (secret !== undefined) writer.hex128(secret)
}

function readRelease(reader: Reader): Release {
  const flags = reader.flags(HAS_SESSION | HAS_REQUEST | HAS_ACK | RELEASE_SECRET)
  const command: Mutable<Release> = { kind: 'release', hold: readSerial(reader) }
  readPartlyNumbered(reader, flags, command)
  if (flags & RELEASE_SECRET) command.secret = reader.hex128()
  return command
}

function writeAdopt(writer: Writer, command: Adopt): void {
  writeNumbered(writer, command)
  writeSerial(writer, command.hold)
  writer.hex128(command.secret)
  writer.hex128(command.newSecret)
}

function readAdopt(reader: Reader): Adopt {
  return {
    kind: 'adopt',
    session: readSerial(reader),
    request: reader.varuint(),
    ack: readAck(reader),
    hold: readSerial(reader),
    secret: reader.hex128() as Hex128,
    newSecret: reader.hex128() as Hex128,
  }
}

function writeSteal(writer: Writer, command: Steal): void {
  writeSerial(writer, command.hold)
  writer.string(command.actor)
  writer.string(command.reason)
}

function readSteal(reader: Reader): Steal {
  return { kind: 'steal', hold: readSerial(reader) as HoldId, actor: reader.string(), reason: reader.string() }
}

function writeFlags(command: Put | Delete): number {
  const { ifVersion, fence } = command
  return (
    numberedFlags(command) | (ifVersion === undefined ? 0 : WRITE_VERSION) | (fence === undefined ? 0 : WRITE_FENCE)
  )
}

function writeConditions(writer: Writer, command: Put | Delete): void {
  writePartlyNumbered(writer, command)
  if (command.ifVersion !== undefined) writer.u64(command.ifVersion)
  if (command.fence !== undefined) writeFence(writer, command.fence)
}

function readConditions(reader: Reader, flags: number, command: Mutable<Put> | Mutable<Delete>): void {
  readPartlyNumbered(reader, flags, command)
  if (flags & WRITE_VERSION) command.ifVersion = reader.u64()
  if (flags & WRITE_FENCE) command.fence = readFence(reader)
}

const WRITE_FLAGS = HAS_SESSION | HAS_REQUEST | HAS_ACK | WRITE_VERSION | WRITE_FENCE

function writePut(writer: Writer, command: Put): void {
  writer.u8(writeFlags(command))
  writer.string(command.key)
  writer.bytes(command.value)
  writeConditions(writer, command)
}

function readPut(reader: Reader): Put {
  const flags = reader.flags(WRITE_FLAGS)
  const command: Mutable<Put> = { kind: 'put', key: reader.string(), value: reader.bytes() }
  readConditions(reader, flags, command)
  return command
}

function writeDelete(writer: Writer, command: Delete): void {
  writer.u8(writeFlags(command))
  writer.string(command.key)
  writeConditions(writer, command)
}

function readDelete(reader: Reader): Delete {
  const flags = reader.flags(WRITE_FLAGS)
  const command: Mutable<Delete> = { kind: 'delete', key: reader.string() }
  readConditions(reader, flags, command)
  return command
}

/** Writes limits: one bit per present field, then the values. */
export function writeLimits(writer: Writer, limits: Partial<Limits>): void {
  let bits = 0
  for (const [i, field] of LIMIT_FIELDS.entries()) if (limits[field] !== undefined) bits |= 1 << i
  writer.varuint(bits)
  for (const field of LIMIT_FIELDS) {
    const value = limits[field]
    if (value !== undefined) writer.varuint(value)
  }
}

export function readLimits(reader: Reader): Partial<Limits> {
  const bits = reader.varuint(2 ** LIMIT_FIELDS.length - 1)
  const limits: Partial<Mutable<Limits>> = {}
  for (const [i, field] of LIMIT_FIELDS.entries()) if (bits & (1 << i)) limits[field] = reader.varuint()
  return limits
}

function writeConfigure(writer: Writer, command: Configure): void {
  const { limits, level, permits, floor } = command
  writer.u8(
    (limits === undefined ? 0 : CONFIGURE_LIMITS) |
      (level === undefined ? 0 : CONFIGURE_LEVEL) |
      (permits === undefined ? 0 : CONFIGURE_PERMITS) |
      (floor === undefined ? 0 : CONFIGURE_FLOOR),
  )
  if (limits !== undefined) writeLimits(writer, limits)
  if (level !== undefined) writer.varuint(level)
  if (permits !== undefined) {
    writer.string(permits.name)
    writer.varuint(permits.size)
  }
  if (floor !== undefined) writeSerial(writer, floor)
}

function readConfigure(reader: Reader): Configure {
  const flags = reader.flags(CONFIGURE_LIMITS | CONFIGURE_LEVEL | CONFIGURE_PERMITS | CONFIGURE_FLOOR)
  const command: Mutable<Configure> = { kind: 'configure' }
  if (flags & CONFIGURE_LIMITS) command.limits = readLimits(reader)
  if (flags & CONFIGURE_LEVEL) command.level = reader.varuint()
  if (flags & CONFIGURE_PERMITS) command.permits = { name: reader.string(), size: reader.varuint() }
  if (flags & CONFIGURE_FLOOR) command.floor = readSerial(reader)
  return command
}
