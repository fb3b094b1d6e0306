import type { Reader, Writer } from '@leasehold/core'
import type { Index, NodeId, Term } from '@leasehold/raft'

/** A place in the history of the cluster. */
export interface EntryId {
  readonly index: Index
  readonly term: Term
}

/** An entry and the checksum of its content; 0 when that is unknown, as for compacted entries. */
export interface CheckedEntry extends EntryId {
  readonly checksum: number
}

/** Most members to remember, so that the memory fits into its file and into a frame. */
const MEMBERS_MAX = 100

/** Stands for no entry: index 0. */
export const NO_ENTRY: CheckedEntry = { index: 0, term: 0, checksum: 0 }

/** Whether `one` comes later than `other`: a later term outweighs any index, as in elections. */
export function isLater(one: EntryId, other: EntryId): boolean {
  return one.term > other.term || (one.term === other.term && one.index > other.index)
}

export function writeEntryId(writer: Writer, { index, term }: EntryId): void {
  writer.varuint(index)
  writer.varuint(term)
}

/** @throws CodecError */
export function readEntryId(reader: Reader): EntryId {
  return { index: reader.varuint(), term: reader.varuint() }
}

/**
 * The highest committed entry that each member of the cluster has acknowledged. A committed entry is never truncated, so the
 * member keeps it, or a snapshot that covers it, as long as it has its node number. Uncommitted entries are not recorded:
 * they may be truncated.
 *
 * A repair, a removal followed by an addition, a recover and a restore all create new node numbers or cluster ids, so these
 * records never apply to a member after one of them.
 */
export class AcknowledgedMemory {
  readonly #entries = new Map<NodeId, EntryId>()
  /** Increases with each change. */
  version = 0

  get(node: NodeId): EntryId | undefined {
    return this.#entries.get(node)
  }

  note(node: NodeId, entry: EntryId): void {
    const known = this.#entries.get(node)
    if (!isLater(entry, known ?? NO_ENTRY) || (known === undefined && this.#entries.size >= MEMBERS_MAX)) return
    this.#entries.set(node, entry)
    this.version++
  }

  /** Drops members that have been removed: their numbers are not reused. */
  retain(nodes: ReadonlySet<NodeId>): void {
    for (const node of this.#entries.keys()) if (!nodes.has(node) && this.#entries.delete(node)) this.version++
  }

  write(writer: Writer): void {
    writer.varuint(this.#entries.size)
    for (const [node, entry] of this.#entries) {
      writer.varuint(node)
      writeEntryId(writer, entry)
    }
  }
}

/** Decodes what {@link AcknowledgedMemory.write} wrote. @throws CodecError */
export function readAcknowledged(reader: Reader): (readonly [NodeId, EntryId])[] {
  return Array.from({ length: reader.count(3) }, () => [reader.varuint(), readEntryId(reader)] as const)
}
