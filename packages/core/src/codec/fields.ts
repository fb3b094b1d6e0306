import type { Index, Millis, Serial } from '../brand.js'
import { InvalidError } from '../errors.js'
import type { Ack, Cursor, Fence, Grant, HeldLock, LockRequest, Mode } from '../operations.js'
import { COUNTER_MAX, EPOCH_MAX } from '../tokens.js'
import type { Reader } from './reader.js'
import type { Writer } from './writer.js'

/** `T` with writable fields, for decoders that add optional ones. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function writeList<T>(writer: Writer, items: readonly T[], write: (writer: Writer, item: T) => void): void {
  writer.varuint(items.length)
  for (let i = 0; i < items.length; i++) write(writer, items[i] as T)
}

/** Reads a list of items that take at least `bytesEach` bytes each. */
export function readList<T>(reader: Reader, bytesEach: number, read: (reader: Reader) => T): T[] {
  const items: T[] = []
  for (let left = reader.count(bytesEach); left > 0; left--) items.push(read(reader))
  return items
}

/** Writes a counter value, or 0 for none. */
export function writeSerial(writer: Writer, serial: Serial): void {
  if (serial > COUNTER_MAX) throw new InvalidError(`a counter value is at most ${COUNTER_MAX}, not ${serial}`)
  writer.varuint(serial)
}

export function readSerial(reader: Reader): Serial {
  return reader.varuint(COUNTER_MAX) as Serial
}

export function readMillis(reader: Reader): Millis {
  return reader.varuint() as Millis
}

export function writeString(writer: Writer, text: string): void {
  writer.string(text)
}

export function readString(reader: Reader): string {
  return reader.string()
}

export function writeVaruint(writer: Writer, value: number): void {
  writer.varuint(value)
}

export function readVaruint(reader: Reader): number {
  return reader.varuint()
}

/** The highest number of permits that the format can represent. */
export const PERMITS_ENCODED_MAX = 2 ** 32 - 1
const MODE_MAX = PERMITS_ENCODED_MAX + 2

/** 0: exclusive, 1: shared, n + 2: one of n permits. */
function modeNumber(mode: Mode): number {
  if (mode === 'exclusive') return 0
  if (mode === 'shared') return 1
  const permits = mode?.permits
  if (permits >>> 0 !== permits) throw new InvalidError(`not a mode: ${JSON.stringify(mode)}`)
  return permits + 2
}

function modeOf(number: number): Mode {
  return number === 0 ? 'exclusive' : number === 1 ? 'shared' : { permits: number - 2 }
}

export function writeMode(writer: Writer, mode: Mode): void {
  writer.varuint(modeNumber(mode))
}

export function readMode(reader: Reader): Mode {
  return modeOf(reader.varuint(MODE_MAX))
}

export function writeLockRequest(writer: Writer, lock: LockRequest): void {
  writer.string(lock.name)
  writeMode(writer, lock.mode)
}

export function readLockRequest(reader: Reader): LockRequest {
  return { name: reader.string(), mode: readMode(reader) }
}

/** Writes a mode and an optional slot, in one byte for the frequent modes without a slot. */
export function writeModeAndSlot(writer: Writer, mode: Mode, slot: number | undefined): void {
  const number = 2 * modeNumber(mode)
  if (slot === undefined) return writer.varuint(number)
  writer.varuint(number + 1)
  writer.varuint(slot)
}

export function readModeAndSlot(reader: Reader): { mode: Mode; slot: number | undefined } {
  const number = reader.varuint(2 * MODE_MAX + 1)
  const odd = number % 2
  return { mode: modeOf((number - odd) / 2), slot: odd === 1 ? reader.varuint() : undefined }
}

export function writeHeldLock(writer: Writer, lock: HeldLock): void {
  writer.string(lock.name)
  writeModeAndSlot(writer, lock.mode, lock.slot)
  writeSerial(writer, lock.token)
}

export function readHeldLock(reader: Reader): HeldLock {
  const name = reader.string()
  const { mode, slot } = readModeAndSlot(reader)
  const token = readSerial(reader)
  return slot === undefined ? { name, mode, token } : { name, mode, token, slot }
}

export function writeGrant(writer: Writer, grant: Grant): void {
  const { hold, locks, secret } = grant
  writeSerial(writer, hold)
  writer.bool(secret !== undefined)
  if (secret !== undefined) writer.hex128(secret)
  writeList(writer, locks, writeHeldLock)
}

export function readGrant(reader: Reader): Grant {
  const hold = readSerial(reader)
  if (!reader.bool()) return { hold, locks: readHeldLocks(reader) }
  const secret = reader.hex128()
  return { hold, locks: readHeldLocks(reader), secret }
}

export function readHeldLocks(reader: Reader): HeldLock[] {
  return readList(reader, 3, readHeldLock)
}

export function writeAck(writer: Writer, ack: Ack): void {
  writer.varuint(ack.lowest)
  writeList(writer, ack.also, writeVaruint)
}

export function readAck(reader: Reader): Ack {
  return { lowest: reader.varuint(), also: readList(reader, 1, readVaruint) }
}

export function writeFence(writer: Writer, fence: Fence): void {
  writeSerial(writer, fence.hold)
  writer.string(fence.lock)
}

export function readFence(reader: Reader): Fence {
  return { hold: readSerial(reader), lock: reader.string() }
}

export function writeEpoch(writer: Writer, epoch: number): void {
  if (epoch > EPOCH_MAX) throw new InvalidError(`an epoch is at most ${EPOCH_MAX}, not ${epoch}`)
  writer.varuint(epoch)
}

export function readEpoch(reader: Reader): number {
  return reader.varuint(EPOCH_MAX)
}

export function writeCursor(writer: Writer, cursor: Cursor): void {
  writeEpoch(writer, cursor.epoch)
  writer.varuint(cursor.index)
  writer.varuint(cursor.ordinal)
}

export function readCursor(reader: Reader): Cursor {
  return { epoch: readEpoch(reader), index: reader.varuint() as Index, ordinal: reader.varuint() }
}
