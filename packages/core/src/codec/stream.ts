import type { Index } from '../brand.js'
import { InvalidError } from '../errors.js'
import type { ClientMessage, ServerMessage } from '../frames.js'
import { readCommand, writeCommand } from './commands.js'
import { readEvent, writeEvent } from './events.js'
import {
  readCursor,
  readEpoch,
  readList,
  readSerial,
  readString,
  writeCursor,
  writeEpoch,
  writeList,
  writeSerial,
  writeString,
} from './fields.js'
import { Reader } from './reader.js'
import { readPush, readRefused, readResult, writePush, writeRefused, writeResult } from './results.js'
import {
  readQuery,
  readQueryResult,
  readRegisterView,
  writeQuery,
  writeQueryResult,
  writeRegisterView,
} from './views.js'
import { Writer } from './writer.js'

/** First byte of a client's message. Part of the format: never change or reuse a number. */
export const CLIENT_MESSAGE_KINDS = {
  hello: 1,
  attach: 2,
  command: 3,
  query: 4,
  get: 5,
  watch: 6,
  unwatch: 7,
  ping: 8,
} as const satisfies Record<ClientMessage['kind'], number>

/** First byte of a server's message. Part of the format: never change or reuse a number. */
export const SERVER_MESSAGE_KINDS = {
  welcome: 1,
  attached: 2,
  result: 3,
  queryAnswer: 4,
  getAnswer: 5,
  push: 6,
  events: 7,
  pong: 8,
  error: 9,
} as const satisfies Record<ServerMessage['kind'], number>

type EventItem = Extract<ServerMessage, { kind: 'events' }>['items'][number]

/** Reset before each use. */
const scratch = new Writer(8192)

/** Returns one frame of `messages`. */
export function encodeClientMessages(messages: readonly ClientMessage[]): Uint8Array {
  scratch.reset()
  for (const message of messages) writeClientMessage(scratch, message)
  return scratch.take()
}

/**
 * Returns the messages of one frame.
 * @throws CodecError
 */
export function decodeClientMessages(frame: Uint8Array): ClientMessage[] {
  const messages: ClientMessage[] = []
  for (const reader = new Reader(frame); !reader.done; ) messages.push(readClientMessage(reader))
  return messages
}

/** Returns one frame of `messages`. */
export function encodeServerMessages(messages: readonly ServerMessage[]): Uint8Array {
  scratch.reset()
  for (const message of messages) writeServerMessage(scratch, message)
  return scratch.take()
}

/**
 * Returns the messages of one frame.
 * @throws CodecError
 */
export function decodeServerMessages(frame: Uint8Array): ServerMessage[] {
  const messages: ServerMessage[] = []
  for (const reader = new Reader(frame); !reader.done; ) messages.push(readServerMessage(reader))
  return messages
}

/**
 * Adds `message` to the frame in `writer`: all of it, or nothing if it throws.
 * @throws InvalidError for values that have no encoding, such as text with lone surrogates
 */
export function writeClientMessage(writer: Writer, message: ClientMessage): void {
  const start = writer.length
  try {
    writeClientBody(writer, message)
  } catch (error) {
    writer.truncate(start)
    throw error
  }
}

/**
 * Adds `message` to the frame in `writer`: all of it, or nothing if it throws.
 * @throws InvalidError for values that have no encoding, such as text with lone surrogates
 */
export function writeServerMessage(writer: Writer, message: ServerMessage): void {
  const start = writer.length
  try {
    writeServerBody(writer, message)
  } catch (error) {
    writer.truncate(start)
    throw error
  }
}

function writeClientBody(writer: Writer, message: ClientMessage): void {
  const number = CLIENT_MESSAGE_KINDS[message.kind]
  if (number === undefined) throw new InvalidError(`not a kind of message: ${JSON.stringify(message.kind)}`)
  writer.u8(number)
  if (message.kind === 'hello') {
    writer.varuint(message.version)
    writer.string(message.apiKey)
    writer.string(message.client)
    return writeEpoch(writer, message.epoch)
  }
  writer.u32(message.correlation)
  switch (message.kind) {
    case 'command':
      return writeCommand(writer, message.command)
    case 'attach':
      writeSerial(writer, message.session)
      return writer.hex128(message.secret)
    case 'query':
      writeQuery(writer, message.query)
      return writer.bool(message.stale)
    case 'get':
      writer.string(message.key)
      return writer.bool(message.stale)
    case 'watch':
      writer.string(message.prefix)
      writer.bool(message.from !== undefined)
      if (message.from !== undefined) writeCursor(writer, message.from)
      return
    case 'unwatch':
    case 'ping':
      return
  }
}

/** Reads the next message of a frame that has at least one more byte. */
export function readClientMessage(reader: Reader): ClientMessage {
  const start = reader.offset
  const number = reader.u8()
  if (number === CLIENT_MESSAGE_KINDS.hello) {
    return {
      kind: 'hello',
      version: reader.varuint(),
      apiKey: reader.string(),
      client: reader.string(),
      epoch: readEpoch(reader),
    }
  }
  const correlation = reader.u32()
  switch (number) {
    case CLIENT_MESSAGE_KINDS.command:
      return { kind: 'command', correlation, command: readCommand(reader) }
    case CLIENT_MESSAGE_KINDS.attach:
      return { kind: 'attach', correlation, session: readSerial(reader), secret: reader.hex128() }
    case CLIENT_MESSAGE_KINDS.query:
      return { kind: 'query', correlation, query: readQuery(reader), stale: reader.bool() }
    case CLIENT_MESSAGE_KINDS.get:
      return { kind: 'get', correlation, key: reader.string(), stale: reader.bool() }
    case CLIENT_MESSAGE_KINDS.watch: {
      const prefix = reader.string()
      if (!reader.bool()) return { kind: 'watch', correlation, prefix }
      return { kind: 'watch', correlation, prefix, from: readCursor(reader) }
    }
    case CLIENT_MESSAGE_KINDS.unwatch:
      return { kind: 'unwatch', correlation }
    case CLIENT_MESSAGE_KINDS.ping:
      return { kind: 'ping', correlation }
    default:
      throw reader.wrong(`a kind of client message, not ${number}`, start)
  }
}

function writeServerBody(writer: Writer, message: ServerMessage): void {
  const number = SERVER_MESSAGE_KINDS[message.kind]
  if (number === undefined) throw new InvalidError(`not a kind of message: ${JSON.stringify(message.kind)}`)
  writer.u8(number)
  if (message.kind === 'push') return writePush(writer, message.push)
  if (message.kind === 'welcome') {
    writer.varuint(message.version)
    writer.string(message.cluster)
    writeEpoch(writer, message.epoch)
    writer.string(message.member)
    writer.string(message.leaderUrl)
    return writeList(writer, message.urls, writeString)
  }
  writer.u32(message.correlation)
  switch (message.kind) {
    case 'result':
      return writeResult(writer, message.result)
    case 'queryAnswer':
      return writeQueryResult(writer, message.answer)
    case 'getAnswer':
      writer.bool(message.register !== undefined)
      if (message.register !== undefined) writeRegisterView(writer, message.register)
      return
    case 'events':
      writer.varuint(message.index)
      return writeList(writer, message.items, writeEventItem)
    case 'error':
      writeRefused(writer, message.refused)
      return writer.string(message.leaderUrl)
    case 'attached':
    case 'pong':
      return
  }
}

/** Reads the next message of a frame that has at least one more byte. */
export function readServerMessage(reader: Reader): ServerMessage {
  const start = reader.offset
  const number = reader.u8()
  if (number === SERVER_MESSAGE_KINDS.push) return { kind: 'push', push: readPush(reader) }
  if (number === SERVER_MESSAGE_KINDS.welcome) {
    return {
      kind: 'welcome',
      version: reader.varuint(),
      cluster: reader.string(),
      epoch: readEpoch(reader),
      member: reader.string(),
      leaderUrl: reader.string(),
      urls: readList(reader, 1, readString),
    }
  }
  const correlation = reader.u32()
  switch (number) {
    case SERVER_MESSAGE_KINDS.result:
      return { kind: 'result', correlation, result: readResult(reader) }
    case SERVER_MESSAGE_KINDS.attached:
      return { kind: 'attached', correlation }
    case SERVER_MESSAGE_KINDS.queryAnswer:
      return { kind: 'queryAnswer', correlation, answer: readQueryResult(reader) }
    case SERVER_MESSAGE_KINDS.getAnswer:
      return { kind: 'getAnswer', correlation, register: reader.bool() ? readRegisterView(reader) : undefined }
    case SERVER_MESSAGE_KINDS.events:
      return {
        kind: 'events',
        correlation,
        index: reader.varuint() as Index,
        items: readList(reader, 4, readEventItem),
      }
    case SERVER_MESSAGE_KINDS.pong:
      return { kind: 'pong', correlation }
    case SERVER_MESSAGE_KINDS.error:
      return { kind: 'error', correlation, refused: readRefused(reader), leaderUrl: reader.string() }
    default:
      throw reader.wrong(`a kind of server message, not ${number}`, start)
  }
}

function writeEventItem(writer: Writer, item: EventItem): void {
  writer.varuint(item.ordinal)
  writeEvent(writer, item.event)
}

function readEventItem(reader: Reader): EventItem {
  return { ordinal: reader.varuint(), event: readEvent(reader) }
}
