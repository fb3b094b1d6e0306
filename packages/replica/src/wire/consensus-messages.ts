import type { Reader, Writer } from '@leasehold/core'
import { type Entry, type Message, MESSAGE_KINDS, type NodeId } from '@leasehold/raft'
import { readConfiguration, writeConfiguration } from '../members.js'
import { readContent, writeContent } from '../log/entries.js'

const REJECT = 1
const HAS_SNAPSHOT = 2

/** Writes a message of consensus; sender and receiver are in the frame. */
export function writeMessage(writer: Writer, message: Message): void {
  writer.u8(MESSAGE_KINDS.indexOf(message.kind))
  writer.u8((message.reject ? REJECT : 0) | (message.snapshot ? HAS_SNAPSHOT : 0))
  for (const field of [message.term, message.logTerm, message.index, message.commit, message.hint, message.context]) {
    writer.varuint(field)
  }
  writer.varuint(message.entries.length)
  for (const entry of message.entries) {
    writer.varuint(entry.index)
    writer.varuint(entry.term)
    writeContent(writer, entry)
  }
  if (!message.snapshot) return
  writer.varuint(message.snapshot.index)
  writer.varuint(message.snapshot.term)
  writeConfiguration(writer, message.snapshot.configuration)
}

/** @throws CodecError */
export function readMessage(reader: Reader, from: NodeId, to: NodeId): Message {
  const kind = MESSAGE_KINDS[reader.u8()]
  if (kind === undefined) throw reader.wrong('a kind of message', reader.offset - 1)
  const flags = reader.flags(REJECT | HAS_SNAPSHOT)
  const [term, logTerm, index, commit, hint, context] = Array.from({ length: 6 }, () => reader.varuint()) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const entries: Entry[] = Array.from({ length: reader.count(4) }, () => {
    const at = reader.varuint()
    return readContent(reader, at, reader.varuint())
  })
  const snapshot =
    flags & HAS_SNAPSHOT
      ? { index: reader.varuint(), term: reader.varuint(), configuration: readConfiguration(reader) }
      : undefined
  reader.finish()
  return {
    kind,
    from,
    to,
    term,
    logTerm,
    index,
    entries,
    commit,
    reject: (flags & REJECT) !== 0,
    hint,
    context,
    snapshot,
  }
}
