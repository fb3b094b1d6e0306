import type { Reader, Writer } from '@leasehold/core'
import type { Index, Term } from '@leasehold/raft'

/** One piece of a snapshot. `transfer` is new for each transfer, so pieces of different ones are never combined. */
export interface Chunk {
  readonly transfer: number
  /** The leader's term. */
  readonly leaderTerm: Term
  readonly index: Index
  readonly term: Term
  readonly metaBytes: number
  readonly total: number
  readonly checksum: number
  readonly offset: number
  readonly data: Uint8Array
}

export interface ChunkAck {
  readonly transfer: number
  /** Where the receiver continues. */
  readonly offset: number
  readonly result: 'more' | 'done' | 'failed'
}

const RESULTS = ['more', 'done', 'failed'] as const

export function writeChunk(writer: Writer, chunk: Chunk): void {
  const { transfer, leaderTerm, index, term, metaBytes, total, offset } = chunk
  for (const field of [transfer, leaderTerm, index, term, metaBytes, total, offset]) writer.varuint(field)
  writer.u32(chunk.checksum)
  writer.bytes(chunk.data)
}

export function readChunk(reader: Reader): Chunk {
  const next = (): number => reader.varuint()
  const [transfer, leaderTerm, index, term, metaBytes, total, offset] = [
    next(),
    next(),
    next(),
    next(),
    next(),
    next(),
    next(),
  ]
  const checksum = reader.u32()
  const data = reader.bytes()
  reader.finish()
  return { transfer, leaderTerm, index, term, metaBytes, total, checksum, offset, data }
}

export function writeChunkAck(writer: Writer, ack: ChunkAck): void {
  writer.varuint(ack.transfer)
  writer.varuint(ack.offset)
  writer.u8(RESULTS.indexOf(ack.result))
}

export function readChunkAck(reader: Reader): ChunkAck {
  const transfer = reader.varuint()
  const offset = reader.varuint()
  const result = RESULTS[reader.choice(RESULTS.length - 1, 'a result')] as ChunkAck['result']
  reader.finish()
  return { transfer, offset, result }
}
