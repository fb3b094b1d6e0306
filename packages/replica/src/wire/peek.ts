import { CodecError, Reader } from '@leasehold/core'
import { type MessageKind, MESSAGE_KINDS } from '@leasehold/raft'
import { PEER_KINDS } from './peer-frames.js'

/** The leading fields of a consensus message. */
export interface PeekedMessage {
  readonly kind: MessageKind
  readonly from: number
  readonly to: number
  readonly term: number
  readonly index: number
  readonly reject: boolean
}

const CLUSTER_BYTES = 16
const REJECT = 1

/**
 * Reads the leading fields of a frame between members, without verifying it and without its entries. Cheap enough for every
 * frame. Returns undefined when the frame is not a consensus message.
 *
 * @throws CodecError when it is not a frame
 */
export function peekMessage(frame: Uint8Array): PeekedMessage | undefined {
  if (frame[1] !== PEER_KINDS.consensus) return undefined
  const reader = new Reader(frame, 2 + CLUSTER_BYTES)
  const [from, to] = [reader.varuint(), reader.varuint()]
  const kind = MESSAGE_KINDS[reader.u8()]
  if (kind === undefined) throw reader.wrong('a kind of message', reader.offset - 1)
  const reject = (reader.u8() & REJECT) !== 0
  const term = reader.varuint()
  reader.varuint()
  return { kind, from, to, term, index: reader.varuint(), reject }
}

/** The node number of the sender of a frame; undefined when it is no frame at all. */
export function frameSender(frame: Uint8Array): number | undefined {
  try {
    return new Reader(frame, 2 + CLUSTER_BYTES).varuint()
  } catch (error) {
    if (error instanceof CodecError) return undefined
    throw error
  }
}
