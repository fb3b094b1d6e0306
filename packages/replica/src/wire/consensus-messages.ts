import type { Reader, Writer } from '@leasehold/core'
import { type Entry, type Message, MESSAGE_KINDS, message, type NodeId, type SnapshotMeta } from '@leasehold/raft'
import { readConfiguration, writeConfiguration } from '../cluster-meta.js'
import { readContent, writeContent } from '../log/entry-codec.js'

/** Terms and indexes above this are damage or an attack: they would leave the range of exact numbers. */
const NUMBER_MAX = 2 ** 52
const REJECT = 1
const HAS_SNAPSHOT = 2
const NUMBERS: ReadonlyMap<Message['kind'], number> = new Map(MESSAGE_KINDS.map((kind, number) => [kind, number]))

/** The fields of a message beside its kind, sender and receiver. Each message has all of them on the wire. */
interface WireFields {
  readonly term: number
  readonly logTerm?: number
  readonly index?: number
  readonly commit?: number
  readonly hint?: number
  readonly context?: number
  readonly reject?: boolean
  readonly entries?: readonly Entry[]
  readonly snapshot?: SnapshotMeta
}

/** Writes a consensus message. The frame holds sender and receiver. */
export function writeMessage(writer: Writer, sent: Message): void {
  const { term, logTerm, index, commit, hint, context, reject, entries, snapshot }: WireFields = sent
  writer.u8(NUMBERS.get(sent.kind) as number)
  writer.u8((reject ? REJECT : 0) | (snapshot ? HAS_SNAPSHOT : 0))
  writer.varuint(term)
  writer.varuint(logTerm ?? 0)
  writer.varuint(index ?? 0)
  writer.varuint(commit ?? 0)
  writer.varuint(hint ?? 0)
  writer.varuint(context ?? 0)
  writer.varuint(entries?.length ?? 0)
  for (const entry of entries ?? []) {
    writer.varuint(entry.index)
    writer.varuint(entry.term)
    writeContent(writer, entry)
  }
  if (!snapshot) return
  writer.varuint(snapshot.index)
  writer.varuint(snapshot.term)
  writeConfiguration(writer, snapshot.configuration)
}

/** @throws CodecError */
export function readMessage(reader: Reader, from: NodeId, to: NodeId): Message {
  const kind = MESSAGE_KINDS[reader.u8()]
  if (kind === undefined) throw reader.wrong('a kind of message', reader.offset - 1)
  const flags = reader.flags(REJECT | HAS_SNAPSHOT)
  const term = reader.varuint(NUMBER_MAX)
  const logTerm = reader.varuint(NUMBER_MAX)
  const index = reader.varuint(NUMBER_MAX)
  const commit = reader.varuint(NUMBER_MAX)
  const hint = reader.varuint(NUMBER_MAX)
  const context = reader.varuint()
  const entries: Entry[] = []
  for (let left = reader.count(4); left > 0; left--) {
    const at = reader.varuint(NUMBER_MAX)
    entries.push(readContent(reader, at, reader.varuint(NUMBER_MAX)))
  }
  const snapshot =
    flags & HAS_SNAPSHOT
      ? {
          index: reader.varuint(NUMBER_MAX),
          term: reader.varuint(NUMBER_MAX),
          configuration: readConfiguration(reader),
        }
      : undefined
  reader.finish()
  const reject = (flags & REJECT) !== 0
  const fields = { from, to, term, logTerm, index, entries, commit, reject, hint, context }
  if (kind !== 'snapshot') return message({ kind, ...fields })
  if (snapshot === undefined) throw reader.wrong('a snapshot')
  return message({ kind, from, to, term, snapshot })
}
