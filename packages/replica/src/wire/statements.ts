import type { Reader, Writer } from '@leasehold/core'
import type { NodeId } from '@leasehold/raft'
import {
  type AcknowledgedMemory,
  type CheckedEntry,
  type EntryId,
  readAcknowledged,
  readEntryId,
  writeEntryId,
} from '../rollback/acknowledged-memory.js'

/** What one member tells another about the common history. All of it stays true for ever, so it may come late or twice. */
export interface Statement {
  /** The sender's start that wants an answer; 0: none is wanted. */
  readonly requestStart: number
  /** The receiver's start that this answers; 0: none. */
  readonly answeredStart: number
  /** The last entry that the sender knows to be committed. */
  readonly committed: CheckedEntry
  /** The last entry of the sender's log, committed or not. */
  readonly last: CheckedEntry
  /** What the sender has at the index that the receiver said is committed there; index 0: not known (any more). */
  readonly evidence: CheckedEntry
  /** Per member, what it has acknowledged and what is committed, as far as the sender knows. */
  readonly acknowledged: readonly (readonly [NodeId, EntryId])[]
}

export type StatementToWrite = Omit<Statement, 'acknowledged'> & { readonly memory: AcknowledgedMemory }

export function writeStatement(writer: Writer, statement: StatementToWrite): void {
  writer.varuint(statement.requestStart)
  writer.varuint(statement.answeredStart)
  writeChecked(writer, statement.committed)
  writeChecked(writer, statement.last)
  writeChecked(writer, statement.evidence)
  statement.memory.write(writer)
}

function writeChecked(writer: Writer, entry: CheckedEntry): void {
  writeEntryId(writer, entry)
  writer.u32(entry.checksum)
}

function readChecked(reader: Reader): CheckedEntry {
  return { ...readEntryId(reader), checksum: reader.u32() }
}

/** @throws CodecError */
export function readStatement(reader: Reader): Statement {
  const asks = reader.varuint()
  const answers = reader.varuint()
  const committed = readChecked(reader)
  const last = readChecked(reader)
  const evidence = readChecked(reader)
  const acknowledged = readAcknowledged(reader)
  reader.finish()
  return { requestStart: asks, answeredStart: answers, committed, last, evidence, acknowledged }
}
