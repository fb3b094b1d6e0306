import { InvalidError } from '../errors.js'
import type { Change, Push, Refused, Result } from '../operations.js'
import {
  type Mutable,
  readGrant,
  readList,
  readMillis,
  readSerial,
  writeGrant,
  writeList,
  writeSerial,
} from './fields.js'
import type { Reader } from './reader.js'
import { CANCELLED_STATES, END_REASONS, ERROR_CODES } from './enum-codec.js'
import type { Writer } from './writer.js'

/** First byte of a result. Part of the format: never change or reuse a number. */
export const RESULT_KINDS = {
  opened: 1,
  renewed: 2,
  closed: 3,
  granted: 4,
  queued: 5,
  ended: 6,
  cancelled: 7,
  released: 8,
  stolen: 9,
  put: 10,
  deleted: 11,
  configured: 12,
  refused: 13,
} as const satisfies Record<Result['kind'], number>

/** First byte of a change. Part of the format: never change or reuse a number. */
export const CHANGE_KINDS = { granted: 1, refused: 2, ended: 3 } as const satisfies Record<Change['kind'], number>

const REFUSED_HINT = 1
const REFUSED_VERSION = 2
const PUSH_CHANGE = 1
const PUSH_ENDED = 2

export function writeRefused(writer: Writer, refused: Refused): void {
  const { hint, version } = refused
  ERROR_CODES.write(writer, refused.code)
  writer.u8((hint === undefined ? 0 : REFUSED_HINT) | (version === undefined ? 0 : REFUSED_VERSION))
  writer.string(refused.message)
  if (hint !== undefined) writer.string(hint)
  if (version !== undefined) writer.u64(version)
}

export function readRefused(reader: Reader): Refused {
  const code = ERROR_CODES.read(reader)
  const flags = reader.flags(REFUSED_HINT | REFUSED_VERSION)
  const refused: Mutable<Refused> = { kind: 'refused', code, message: reader.string() }
  if (flags & REFUSED_HINT) refused.hint = reader.string()
  if (flags & REFUSED_VERSION) refused.version = reader.u64()
  return refused
}

export function writeResult(writer: Writer, result: Result): void {
  const number = RESULT_KINDS[result.kind]
  if (number === undefined) throw new InvalidError(`not a kind of result: ${JSON.stringify(result.kind)}`)
  writer.u8(number)
  switch (result.kind) {
    case 'granted':
      return writeGrant(writer, result.grant)
    case 'renewed':
      return writeList(writer, result.changes, writeChange)
    case 'queued':
      return writer.varuint(result.position)
    case 'opened':
      writeSerial(writer, result.session)
      writer.hex128(result.secret)
      return writer.varuint(result.ttlMs)
    case 'ended':
      writeSerial(writer, result.hold)
      return END_REASONS.write(writer, result.reason)
    case 'cancelled':
      return CANCELLED_STATES.write(writer, result.was)
    case 'put':
      return writer.u64(result.version)
    case 'refused':
      return writeRefused(writer, result)
    case 'released':
    case 'closed':
    case 'stolen':
    case 'deleted':
    case 'configured':
      return
  }
}

export function readResult(reader: Reader): Result {
  const number = reader.u8()
  switch (number) {
    case RESULT_KINDS.granted:
      return { kind: 'granted', grant: readGrant(reader) }
    case RESULT_KINDS.released:
      return { kind: 'released' }
    case RESULT_KINDS.renewed:
      return { kind: 'renewed', changes: readList(reader, 5, readChange) }
    case RESULT_KINDS.queued:
      return { kind: 'queued', position: reader.varuint() }
    case RESULT_KINDS.opened:
      return { kind: 'opened', session: readSerial(reader), secret: reader.hex128(), ttlMs: readMillis(reader) }
    case RESULT_KINDS.closed:
      return { kind: 'closed' }
    case RESULT_KINDS.ended:
      return { kind: 'ended', hold: readSerial(reader), reason: END_REASONS.read(reader) }
    case RESULT_KINDS.cancelled:
      return { kind: 'cancelled', was: CANCELLED_STATES.read(reader) }
    case RESULT_KINDS.stolen:
      return { kind: 'stolen' }
    case RESULT_KINDS.put:
      return { kind: 'put', version: reader.u64() }
    case RESULT_KINDS.deleted:
      return { kind: 'deleted' }
    case RESULT_KINDS.configured:
      return { kind: 'configured' }
    case RESULT_KINDS.refused:
      return readRefused(reader)
    default:
      throw reader.wrong(`a kind of result, not ${number}`, reader.offset - 1)
  }
}

export function writeChange(writer: Writer, change: Change): void {
  const number = CHANGE_KINDS[change.kind]
  if (number === undefined) throw new InvalidError(`not a kind of change: ${JSON.stringify(change.kind)}`)
  writer.u8(number)
  writer.varuint(change.number)
  switch (change.kind) {
    case 'granted':
      writer.varuint(change.request)
      return writeGrant(writer, change.grant)
    case 'refused':
      writer.varuint(change.request)
      return writeRefused(writer, change.refused)
    case 'ended':
      writeSerial(writer, change.hold)
      END_REASONS.write(writer, change.reason)
      return writer.string(change.text)
  }
}

export function readChange(reader: Reader): Change {
  const start = reader.offset
  const kind = reader.u8()
  const number = reader.varuint()
  switch (kind) {
    case CHANGE_KINDS.granted:
      return { kind: 'granted', number, request: reader.varuint(), grant: readGrant(reader) }
    case CHANGE_KINDS.refused:
      return { kind: 'refused', number, request: reader.varuint(), refused: readRefused(reader) }
    case CHANGE_KINDS.ended: {
      const hold = readSerial(reader)
      const reason = END_REASONS.read(reader)
      return { kind: 'ended', number, hold, reason, text: reader.string() }
    }
    default:
      throw reader.wrong(`a kind of change, not ${kind}`, start)
  }
}

export function writePush(writer: Writer, push: Push): void {
  const { change, ended } = push
  writer.u8((change === undefined ? 0 : PUSH_CHANGE) | (ended === undefined ? 0 : PUSH_ENDED))
  writeSerial(writer, push.session)
  if (change !== undefined) writeChange(writer, change)
  if (ended !== undefined) END_REASONS.write(writer, ended)
}

export function readPush(reader: Reader): Push {
  const flags = reader.flags(PUSH_CHANGE | PUSH_ENDED)
  const push: Mutable<Push> = { session: readSerial(reader) }
  if (flags & PUSH_CHANGE) push.change = readChange(reader)
  if (flags & PUSH_ENDED) push.ended = END_REASONS.read(reader)
  return push
}
