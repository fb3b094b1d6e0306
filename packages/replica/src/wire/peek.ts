import { Reader } from '@leasehold/core'
import { type MessageKind, MESSAGE_KINDS } from '@leasehold/raft'
import { PEER_KINDS } from './peer-frames.js'

/** What a message of consensus says of its sender. Fields as in the message itself. */
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
 * Looks at a frame on its way between members, without its checks and without its entries: cheap enough for every frame.
 * Undefined: it is no message of consensus.
 *
 * @throws CodecError when it is no frame at all
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
