import { crc32, joinedCrc32 } from '@leasehold/core'
import type { Index, NodeId, Term } from '@leasehold/raft'
import type { Chunk, ChunkAck } from '../wire/snapshot-chunks.js'
import type { StatePieces } from './snapshot-store.js'

export const CHUNK_BYTES = 256 * 1024
/** Most unacknowledged chunks. */
export const CHUNKS_AHEAD_MAX = 4
/** Without an acknowledgement, chunks are resent after {@link RESEND_TICKS}; the transfer fails after {@link FAIL_TICKS}. */
const RESEND_TICKS = 5
const FAIL_TICKS = 100
/** The receiver rejects larger snapshots. */
export const TRANSFER_BYTES_MAX = 1024 * 1024 * 1024

/** The content of a transfer: a snapshot of the lock state and of the cluster's members. */
export interface TransferContent {
  readonly index: Index
  readonly term: Term
  readonly meta: Uint8Array
  readonly state: StatePieces
}

/** Sends one snapshot to one peer, a window of chunks at a time. */
export class SnapshotSender {
  readonly #transfer: number
  readonly #leaderTerm: Term
  readonly #content: TransferContent
  readonly #send: (chunk: Chunk) => void
  readonly #pieces: readonly Uint8Array[]
  readonly #total: number
  readonly #checksum: number
  #acknowledged = 0
  #sent = 0
  #quietTicks = 0
  #sinceSent = 0

  constructor(
    readonly to: NodeId,
    transfer: number,
    leaderTerm: Term,
    content: TransferContent,
    send: (chunk: Chunk) => void,
  ) {
    this.#transfer = transfer
    this.#leaderTerm = leaderTerm
    this.#content = content
    this.#send = send
    const { meta, state } = content
    this.#pieces = [meta, ...state.pieces]
    this.#total = meta.length + state.bytes
    this.#checksum = joinedCrc32(crc32(meta), state.checksum, state.bytes)
    this.#fill()
  }

  /** Handles an acknowledgement. Returns the outcome of the transfer, once there is one. Ignores other transfers. */
  acknowledge(ack: ChunkAck): 'done' | 'failed' | undefined {
    if (ack.transfer !== this.#transfer) return undefined
    if (ack.result !== 'more') return ack.result
    this.#quietTicks = 0
    this.#sinceSent = 0
    // The receiver decides: it may have lost chunks, and continues at its own offset.
    if (ack.offset > this.#acknowledged) this.#acknowledged = Math.min(ack.offset, this.#total)
    this.#sent = Math.max(this.#sent, this.#acknowledged)
    this.#fill()
    return undefined
  }

  tick(): 'failed' | undefined {
    this.#quietTicks++
    this.#sinceSent++
    if (this.#quietTicks >= FAIL_TICKS) return 'failed'
    if (this.#sinceSent >= RESEND_TICKS) {
      this.#sent = this.#acknowledged
      this.#fill()
      // The receiver has everything, or its acknowledgement was lost: resending one chunk makes it reply.
      if (this.#acknowledged === this.#total) this.#sendChunk(Math.max(0, this.#total - CHUNK_BYTES))
    }
    return undefined
  }

  #fill(): void {
    while (this.#sent < this.#total && this.#sent < this.#acknowledged + CHUNK_BYTES * CHUNKS_AHEAD_MAX) {
      this.#sent = this.#sendChunk(this.#sent)
    }
  }

  #sendChunk(offset: number): number {
    const end = Math.min(offset + CHUNK_BYTES, this.#total)
    this.#sinceSent = 0
    this.#send({
      transfer: this.#transfer,
      leaderTerm: this.#leaderTerm,
      index: this.#content.index,
      term: this.#content.term,
      metaBytes: this.#content.meta.length,
      total: this.#total,
      checksum: this.#checksum,
      offset,
      data: slicePieces(this.#pieces, offset, end),
    })
    return end
  }
}

/** Returns the bytes from `from` to `to` of the concatenated pieces. */
function slicePieces(pieces: readonly Uint8Array[], from: number, to: number): Uint8Array {
  const bytes = new Uint8Array(to - from)
  let start = 0
  for (const piece of pieces) {
    const end = start + piece.length
    if (end > from && start < to) {
      bytes.set(piece.subarray(Math.max(0, from - start), to - start), Math.max(0, start - from))
    }
    start = end
  }
  return bytes
}

/** A completely received snapshot. */
export interface ReceivedSnapshot extends Omit<TransferContent, 'state'> {
  readonly state: Uint8Array
  /** Checksum of the state alone. */
  readonly checksum: number
  readonly from: NodeId
  readonly transfer: number
  readonly leaderTerm: Term
}

/** Assembles the chunks of one transfer. The first chunk of another transfer restarts it, unless that one is older. */
export class SnapshotReceiver {
  #from: NodeId = 0
  #transfer = 0
  #leaderTerm: Term = 0
  #parts: Uint8Array[] = []
  #length = 0
  /** Checksum of the received chunks, updated with each one so that the last does not take long. */
  #checksum = 0
  #finished: ChunkAck | undefined
  #quietTicks = 0

  /** Chunks of an unfinished transfer that are in memory. */
  get bufferedChunks(): number {
    return this.#parts.length
  }

  /** Drops a transfer that has stalled: its sender has given up or is gone. */
  tick(): void {
    if (this.#parts.length === 0 || ++this.#quietTicks < FAIL_TICKS) return
    this.#parts = []
    this.#from = 0
    this.#transfer = 0
  }

  /** Returns the acknowledgement, and the snapshot if this chunk completes it. `busy`: another one is being installed. */
  receive(
    from: NodeId,
    chunk: Chunk,
    busy: boolean,
  ): { readonly ack: ChunkAck | undefined; readonly received?: ReceivedSnapshot } {
    const { transfer, offset, data, total } = chunk
    const same = from === this.#from && transfer === this.#transfer
    this.#quietTicks = 0
    if (!same) {
      if (busy || chunk.leaderTerm < this.#leaderTerm || offset !== 0) return { ack: undefined }
      if (total > TRANSFER_BYTES_MAX) return { ack: { transfer, offset: 0, result: 'failed' } }
      this.#begin(from, chunk)
    }
    if (this.#finished) return { ack: this.#finished }
    if (offset === this.#length && this.#length < total) {
      this.#parts.push(data)
      this.#length += data.length
      this.#checksum = crc32(data, this.#checksum)
      if (this.#length === total) return this.#complete(from, chunk)
    }
    return { ack: { transfer, offset: this.#length, result: 'more' } }
  }

  /** Records the result of the last transfer. Later chunks of it are acknowledged with this result. */
  finish(transfer: number, result: 'done' | 'failed'): ChunkAck {
    const ack = { transfer, offset: 0, result }
    if (transfer === this.#transfer) this.#finished = ack
    return ack
  }

  #begin(from: NodeId, chunk: Chunk): void {
    this.#from = from
    this.#transfer = chunk.transfer
    this.#leaderTerm = chunk.leaderTerm
    this.#parts = []
    this.#length = 0
    this.#checksum = 0
    this.#finished = undefined
  }

  #complete(from: NodeId, chunk: Chunk): { readonly ack: ChunkAck; readonly received?: ReceivedSnapshot } {
    const bytes = new Uint8Array(this.#length)
    let at = 0
    for (const part of this.#parts) {
      bytes.set(part, at)
      at += part.length
    }
    this.#parts = []
    const { transfer, leaderTerm, index, term, metaBytes } = chunk
    if (this.#checksum !== chunk.checksum || metaBytes > bytes.length) return { ack: this.finish(transfer, 'failed') }
    const meta = bytes.slice(0, metaBytes)
    const state = bytes.subarray(metaBytes)
    // Joining is its own inverse: joining the meta's checksum with that of everything leaves the state's.
    const checksum = joinedCrc32(crc32(meta), this.#checksum, state.length)
    return {
      ack: { transfer, offset: this.#length, result: 'more' },
      received: { index, term, meta, state, checksum, from, transfer, leaderTerm },
    }
  }
}
