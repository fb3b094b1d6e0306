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

/** A report from one member to another about the common history. It remains true forever, so delays and repeats are harmless. */
export interface Statement {
  /** The sender's start number when it requests a statement; 0 otherwise. */
  readonly requestStart: number
  /** The receiver's start number when this responds to its request; 0 otherwise. */
  readonly answeredStart: number
  /** The last entry known to be committed at the sender. */
  readonly committed: CheckedEntry
  /** The last entry of the sender's log, committed or not. */
  readonly last: CheckedEntry
  /** The sender's entry at the receiver's commit index; index 0 when it is unknown. */
  readonly evidence: CheckedEntry
  /** The highest committed entry that each member has acknowledged, as far as the sender knows. */
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
