import { InvalidError } from '../errors.js'
import type { Event } from '../operations.js'
import {
  readGrant,
  readHeldLocks,
  readList,
  readSerial,
  readString,
  writeGrant,
  writeHeldLock,
  writeList,
  writeSerial,
  writeString,
} from './fields.js'
import type { Reader } from './reader.js'
import { END_REASONS, UNQUEUE_REASONS } from './enum-codec.js'
import type { Writer } from './writer.js'

/** First byte of an event. Part of the format: never change or reuse a number. */
export const EVENT_KINDS = {
  held: 1,
  freed: 2,
  queued: 3,
  unqueued: 4,
  sessionOpened: 5,
  sessionEnded: 6,
  put: 7,
  deleted: 8,
} as const satisfies Record<Event['kind'], number>

export function writeEvent(writer: Writer, event: Event): void {
  const number = EVENT_KINDS[event.kind]
  if (number === undefined) throw new InvalidError(`not a kind of event: ${JSON.stringify(event.kind)}`)
  writer.u8(number)
  switch (event.kind) {
    case 'held':
      writeGrant(writer, event.grant)
      writeSerial(writer, event.session)
      return writer.string(event.client)
    case 'freed':
      writeSerial(writer, event.hold)
      writeList(writer, event.locks, writeHeldLock)
      END_REASONS.write(writer, event.reason)
      writer.string(event.actor)
      return writer.string(event.text)
    case 'queued':
      return writeWait(writer, event)
    case 'unqueued':
      writeWait(writer, event)
      return UNQUEUE_REASONS.write(writer, event.reason)
    case 'sessionOpened':
      writeSerial(writer, event.session)
      return writer.string(event.client)
    case 'sessionEnded':
      writeSerial(writer, event.session)
      return END_REASONS.write(writer, event.reason)
    case 'put':
    case 'deleted':
      writer.string(event.key)
      return writer.u64(event.version)
  }
}

export function readEvent(reader: Reader): Event {
  const number = reader.u8()
  switch (number) {
    case EVENT_KINDS.held:
      return { kind: 'held', grant: readGrant(reader), session: readSerial(reader), client: reader.string() }
    case EVENT_KINDS.freed:
      return {
        kind: 'freed',
        hold: readSerial(reader),
        locks: readHeldLocks(reader),
        reason: END_REASONS.read(reader),
        actor: reader.string(),
        text: reader.string(),
      }
    case EVENT_KINDS.queued:
      return { kind: 'queued', ...readWait(reader) }
    case EVENT_KINDS.unqueued:
      return { kind: 'unqueued', ...readWait(reader), reason: UNQUEUE_REASONS.read(reader) }
    case EVENT_KINDS.sessionOpened:
      return { kind: 'sessionOpened', session: readSerial(reader), client: reader.string() }
    case EVENT_KINDS.sessionEnded:
      return { kind: 'sessionEnded', session: readSerial(reader), reason: END_REASONS.read(reader) }
    case EVENT_KINDS.put:
      return { kind: 'put', key: reader.string(), version: reader.u64() }
    case EVENT_KINDS.deleted:
      return { kind: 'deleted', key: reader.string(), version: reader.u64() }
    default:
      throw reader.wrong(`a kind of event, not ${number}`, reader.offset - 1)
  }
}

type Wait = Pick<Extract<Event, { kind: 'queued' }>, 'session' | 'request' | 'names'>

function writeWait(writer: Writer, wait: Wait): void {
  writeSerial(writer, wait.session)
  writer.varuint(wait.request)
  writeList(writer, wait.names, writeString)
}

function readWait(reader: Reader): Wait {
  return { session: readSerial(reader), request: reader.varuint(), names: readList(reader, 1, readString) }
}
