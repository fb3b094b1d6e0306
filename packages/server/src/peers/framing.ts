import type { Socket } from 'node:net'

/* Kinds of frames on a connection between members. */
export const FRAME_REPLICA = 0
export const FRAME_REQUEST = 1
export const FRAME_ANSWER = 2
/** The first frame of a replica connection: the node number of the sender, and the address where it listens. */
export const FRAME_SENDER = 3
/** The only frame in the other direction: the receiver rejects everything from this sender. */
export const FRAME_REFUSED = 4

/** Largest frame of the replica: a chunk of a snapshot or a batch of entries. */
export const REPLICA_FRAME_BYTES_MAX = 64 * 1024 * 1024
/** Largest answer: a whole snapshot for a new member. */
export const ANSWER_BYTES_MAX = 1024 * 1024 * 1024

const HEAD_BYTES = 5

/** Length (4 bytes, little-endian, of what follows the head), kind (1 byte), content. */
export function frameHead(kind: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES)
  head.writeUInt32LE(length)
  head.writeUInt8(kind, 4)
  return head
}

/** Largest sender frame: a node number and an address. */
const SENDER_BYTES_MAX = 512
const NODE_BYTES = 8

/** Largest request; a new member sends only a few bytes. */
const QUESTION_BYTES_MAX = 64 * 1024

/** The maximal length per kind of frame that one side accepts; any other kind closes the connection. */
export type FrameLimits = Readonly<Record<number, number>>

/** The frames that a member accepts before the caller has introduced itself: all are small. */
export const FIRST_FRAMES: FrameLimits = {
  [FRAME_REQUEST]: QUESTION_BYTES_MAX,
  [FRAME_SENDER]: SENDER_BYTES_MAX,
}

/** The frames that a member accepts on incoming connections. */
export const SERVER_FRAMES: FrameLimits = {
  [FRAME_REPLICA]: REPLICA_FRAME_BYTES_MAX,
  [FRAME_REQUEST]: QUESTION_BYTES_MAX,
  [FRAME_SENDER]: SENDER_BYTES_MAX,
}

/** The frames that the sender of a request accepts. */
export const ANSWER_FRAMES: FrameLimits = { [FRAME_ANSWER]: ANSWER_BYTES_MAX }

/** The sender on a connection. */
export interface Sender {
  readonly node: number
  /** The address where it listens for other members, HOST:PORT. */
  readonly address: string
}

/** Encodes node number (8 bytes, little-endian) and address. */
export function encodeSender({ node, address }: Sender): Buffer {
  const head = Buffer.allocUnsafe(NODE_BYTES)
  head.writeBigUInt64LE(BigInt(node))
  return Buffer.concat([head, Buffer.from(address)])
}

/** Undefined for malformed bytes. */
export function decodeSender(bytes: Uint8Array): Sender | undefined {
  if (bytes.length <= NODE_BYTES) return undefined
  const buffer = Buffer.from(bytes)
  const node = Number(buffer.readBigUInt64LE())
  if (!Number.isSafeInteger(node) || node < 1) return undefined
  return { node, address: buffer.toString('utf8', NODE_BYTES) }
}

/** Longest address in a refusal. */
const REFUSAL_BYTES_MAX = 512

/** The frames that a sender accepts: the reason of its rejection. Older versions read nothing on such connections. */
export const SENDER_FRAMES: FrameLimits = { [FRAME_REFUSED]: REFUSAL_BYTES_MAX }

/**
 * The instance (one run of the process) of a sender is in a second frame of the same kind, in place of the address: older
 * versions treat it as an unusable address, and ignore it.
 */
const INSTANCE = /^instance=([0-9a-f]{16})$/

export function encodeInstance(node: number, instance: string): Buffer {
  return encodeSender({ node, address: `instance=${instance}` })
}

/** The instance in a sender frame; undefined for a frame with an address. */
export function instanceOf({ address }: Sender): string | undefined {
  return INSTANCE.exec(address)?.[1]
}

/**
 * Splits received bytes into frames; a frame that is too long or of an unexpected kind closes the connection. `limits` is
 * called for every frame, before its content is buffered.
 */
export function readFrames(
  socket: Socket,
  limits: () => FrameLimits,
  onFrame: (kind: number, content: Uint8Array) => void,
): void {
  let chunks: Buffer[] = []
  let length = 0
  let needed = HEAD_BYTES
  const take = (bytes: number): Buffer => {
    const all = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length)
    chunks = all.length > bytes ? [all.subarray(bytes)] : []
    length -= bytes
    return all.subarray(0, bytes)
  }
  let head: { kind: number; length: number } | undefined
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    while (length >= needed) {
      if (head === undefined) {
        const bytes = take(HEAD_BYTES)
        head = { length: bytes.readUInt32LE(), kind: bytes.readUInt8(4) }
        if (head.length > (limits()[head.kind] ?? -1)) {
          socket.destroy(new Error(`unexpected frame of kind ${head.kind} and ${head.length} bytes`))
          return
        }
        needed = head.length
        continue
      }
      // A copy, because the receiver may keep the content, and the chunks are large.
      const content = new Uint8Array(take(head.length))
      const { kind } = head
      head = undefined
      needed = HEAD_BYTES
      onFrame(kind, content)
      if (socket.destroyed) return
    }
  })
}
