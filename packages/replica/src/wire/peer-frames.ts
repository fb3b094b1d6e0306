import { crc32, CodecError, Reader, Writer } from '@leasehold/core'
import type { NodeId } from '@leasehold/raft'

/**
 * Version of the frames between members: version, kind, cluster, sender, receiver, content, checksum of everything before. A
 * frame of another cluster, for another incarnation (node numbers are never reused), or with a wrong checksum is rejected.
 */
export const PEER_VERSION = 1

export const PEER_KINDS = {
  consensus: 1,
  snapshotChunk: 2,
  snapshotAck: 3,
  stateHash: 4,
  statement: 5,
  featureLevel: 6,
} as const
export type PeerKind = keyof typeof PEER_KINDS

const NAMES = new Map<number, PeerKind>(Object.entries(PEER_KINDS).map(([name, number]) => [number, name as PeerKind]))
const CHECKSUM_BYTES = 4

export interface PeerFrame {
  readonly kind: PeerKind
  readonly from: NodeId
  readonly body: Reader
}

/** Encodes and decodes the frames of one member, reusing its buffer. */
export class PeerFrames {
  readonly #cluster: string
  readonly #self: NodeId
  readonly #writer = new Writer(4096)
  /** The encoded cluster id. */
  readonly #clusterBytes: Uint8Array

  constructor(cluster: string, self: NodeId) {
    this.#cluster = cluster
    this.#self = self
    this.#writer.hex128(cluster)
    this.#clusterBytes = this.#writer.take()
  }

  encode(kind: PeerKind, to: NodeId, write: (writer: Writer) => void): Uint8Array {
    const writer = this.#writer
    writer.reset()
    writer.u8(PEER_VERSION)
    writer.u8(PEER_KINDS[kind])
    writer.raw(this.#clusterBytes)
    writer.varuint(this.#self)
    writer.varuint(to)
    write(writer)
    writer.u32(crc32(writer.peek()))
    return writer.take()
  }

  /** Returns the frame, or why it is rejected. Never throws. */
  decode(bytes: Uint8Array): PeerFrame | { readonly refused: string } {
    const end = bytes.length - CHECKSUM_BYTES
    if (end < 2) return { refused: `a frame of ${bytes.length} bytes` }
    if (new Reader(bytes, end).u32() !== crc32(bytes, 0, 0, end)) return { refused: 'a broken checksum' }
    try {
      const body = new Reader(bytes, 0, end)
      const version = body.u8()
      if (version !== PEER_VERSION) return { refused: `version ${version}, not ${PEER_VERSION}` }
      const number = body.u8()
      const kind = NAMES.get(number)
      if (!body.skip(this.#clusterBytes)) return { refused: `cluster ${body.hex128()}, not ${this.#cluster}` }
      const from = body.varuint()
      const to = body.varuint()
      if (to !== this.#self) return { refused: `a frame for node ${to}, which is not this member's number` }
      if (kind === undefined) return { refused: `kind ${number}` }
      return { kind, from, body }
    } catch (error) {
      if (error instanceof CodecError) return { refused: error.message }
      throw error
    }
  }
}
