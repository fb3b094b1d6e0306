import type { Socket } from 'node:net'

/** What a frame on a connection between members is. */
export const FRAME_REPLICA = 0
export const FRAME_ASK = 1
export const FRAME_ANSWER = 2
/** The first frame of a connection for the replica: who sends, and where it listens. */
export const FRAME_SENDER = 3
/** The only frame back on such a connection: the receiver takes nothing from this sender. */
export const FRAME_REFUSED = 4

/** Largest frame of the replica: a chunk of a snapshot or a batch of entries. */
export const REPLICA_FRAME_BYTES_MAX = 64 * 1024 * 1024
/** Largest answer: a whole snapshot for a member that begins. */
export const ANSWER_BYTES_MAX = 1024 * 1024 * 1024

const HEAD_BYTES = 5

/** Length (4 bytes, little-endian, of what follows the head), kind (1 byte), content. */
export function frameHead(kind: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES)
  head.writeUInt32LE(length)
  head.writeUInt8(kind, 4)
  return head
}

/** A node number and an address. */
const SENDER_BYTES_MAX = 512
const NODE_BYTES = 8

/** Largest question; those who begin ask in a few bytes. */
const QUESTION_BYTES_MAX = 64 * 1024

/** Most bytes of each kind of frame that one side takes; a kind that is not in it ends the connection. */
export type FrameBounds = Readonly<Record<number, number>>

/** What a member takes from whoever connects to it. Answers come only to who has asked. */
export const SERVED_FRAMES: FrameBounds = {
  [FRAME_REPLICA]: REPLICA_FRAME_BYTES_MAX,
  [FRAME_ASK]: QUESTION_BYTES_MAX,
  [FRAME_SENDER]: SENDER_BYTES_MAX,
}

/** What somebody takes who has asked. */
export const ANSWER_FRAMES: FrameBounds = { [FRAME_ANSWER]: ANSWER_BYTES_MAX }

/** Who sends on a connection. */
export interface Sender {
  readonly node: number
  /** Where it listens to other members, HOST:PORT. */
  readonly address: string
}

/** Node number (8 bytes, little-endian), address. */
export function encodeSender({ node, address }: Sender): Buffer {
  const head = Buffer.allocUnsafe(NODE_BYTES)
  head.writeBigUInt64LE(BigInt(node))
  return Buffer.concat([head, Buffer.from(address)])
}

/** Undefined for what no member says. */
export function decodeSender(bytes: Uint8Array): Sender | undefined {
  if (bytes.length <= NODE_BYTES) return undefined
  const buffer = Buffer.from(bytes)
  const node = Number(buffer.readBigUInt64LE())
  if (!Number.isSafeInteger(node) || node < 1) return undefined
  return { node, address: buffer.toString('utf8', NODE_BYTES) }
}

/** Longest address in a refusal. */
const REFUSAL_BYTES_MAX = 512

/** What a sender takes: why it is refused. Older versions read nothing on their own connections. */
export const SENDER_FRAMES: FrameBounds = { [FRAME_REFUSED]: REFUSAL_BYTES_MAX }

/**
 * Which run of its process a sender is goes in a second frame of the same kind, in the place of the address: older versions
 * take it for an address that they cannot use, and pass over it.
 */
const INSTANCE = /^instance=([0-9a-f]{16})$/

export function encodeInstance(node: number, instance: string): Buffer {
  return encodeSender({ node, address: `instance=${instance}` })
}

/** Undefined: the frame says where the sender listens, not which run it is. */
export function instanceOf({ address }: Sender): string | undefined {
  return INSTANCE.exec(address)?.[1]
}

/** Cuts what arrives into frames; a frame that is too long or of another kind ends the connection. */
export function readFrames(
  socket: Socket,
  bounds: FrameBounds,
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
        if (head.length > (bounds[head.kind] ?? -1)) {
          socket.destroy(new Error(`a frame of kind ${head.kind} and ${head.length} bytes`))
          return
        }
        needed = head.length
        continue
      }
      // A copy: what is handed out may be kept, and the chunks are large.
      const content = new Uint8Array(take(head.length))
      const { kind } = head
      head = undefined
      needed = HEAD_BYTES
      onFrame(kind, content)
      if (socket.destroyed) return
    }
  })
}
