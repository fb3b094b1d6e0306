import type { Reader, Writer } from '@leasehold/core'
import { type Entry, type Message, MESSAGE_KINDS, type NodeId } from '@leasehold/raft'
import { readConfiguration, writeConfiguration } from '../cluster-meta.js'
import { readContent, writeContent } from '../log/entry-codec.js'

const REJECT = 1
const HAS_SNAPSHOT = 2
const NUMBERS: ReadonlyMap<Message['kind'], number> = new Map(MESSAGE_KINDS.map((kind, number) => [kind, number]))

/** Writes a consensus message. The frame holds sender and receiver. */
export function writeMessage(writer: Writer, message: Message): void {
  writer.u8(NUMBERS.get(message.kind) as number)
  writer.u8((message.reject ? REJECT : 0) | (message.snapshot ? HAS_SNAPSHOT : 0))
  writer.varuint(message.term)
  writer.varuint(message.logTerm)
  writer.varuint(message.index)
  writer.varuint(message.commit)
  writer.varuint(message.hint)
  writer.varuint(message.context)
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
  const term = reader.varuint()
  const logTerm = reader.varuint()
  const index = reader.varuint()
  const commit = reader.varuint()
  const hint = reader.varuint()
  const context = reader.varuint()
  const entries: Entry[] = []
  for (let left = reader.count(4); left > 0; left--) {
    const at = reader.varuint()
    entries.push(readContent(reader, at, reader.varuint()))
  }
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
