import type fc from 'fast-check'
import * as core from '../../src/index.js'
import * as any from '../arbitraries.js'

/** A type of the codec, with an arbitrary of its values. */
export interface Codec<T> {
  readonly name: string
  readonly values: fc.Arbitrary<T>
  readonly write: (writer: core.Writer, value: T) => void
  readonly read: (reader: core.Reader) => T
}

function codec<T>(
  name: string,
  values: fc.Arbitrary<T>,
  write: (writer: core.Writer, value: T) => void,
  read: (reader: core.Reader) => T,
): Codec<unknown> {
  return { name, values, write: write as Codec<unknown>['write'], read }
}

export const CODECS: readonly Codec<unknown>[] = [
  codec('entry', any.entry, core.writeEntry, core.readEntry),
  codec('command', any.command, core.writeCommand, core.readCommand),
  codec('result', any.result, core.writeResult, core.readResult),
  codec('refused', any.refused, core.writeRefused, core.readRefused),
  codec('change', any.change, core.writeChange, core.readChange),
  codec('push', any.push, core.writePush, core.readPush),
  codec('event', any.event, core.writeEvent, core.readEvent),
  codec('cursor', any.cursor, core.writeCursor, core.readCursor),
  codec('grant', any.grant, core.writeGrant, core.readGrant),
  codec('held lock', any.heldLock, core.writeHeldLock, core.readHeldLock),
  codec('lock request', any.lockRequest, core.writeLockRequest, core.readLockRequest),
  codec('mode', any.mode, core.writeMode, core.readMode),
  codec('ack', any.ack, core.writeAck, core.readAck),
  codec('fence', any.fence, core.writeFence, core.readFence),
  codec('query', any.query, core.writeQuery, core.readQuery),
  codec('query result', any.queryResult, core.writeQueryResult, core.readQueryResult),
  codec('hold view', any.holdView, core.writeHoldView, core.readHoldView),
  codec('waiter view', any.waiterView, core.writeWaiterView, core.readWaiterView),
  codec('session view', any.sessionView, core.writeSessionView, core.readSessionView),
  codec('delay view', any.delayView, core.writeDelayView, core.readDelayView),
  codec('register view', any.registerView, core.writeRegisterView, core.readRegisterView),
  codec('client message', any.clientMessage, core.writeClientMessage, core.readClientMessage),
  codec('server message', any.serverMessage, core.writeServerMessage, core.readServerMessage),
]

export function encode<T>({ write }: Pick<Codec<T>, 'write'>, value: T): Uint8Array {
  const writer = new core.Writer(16)
  write(writer, value)
  return writer.take()
}

/** Reads one value that fills `bytes`. */
export function decode<T>({ read }: Pick<Codec<T>, 'read'>, bytes: Uint8Array): T {
  const reader = new core.Reader(bytes)
  const value = read(reader)
  reader.finish()
  return value
}
