import type { Socket } from 'node:net'
import type { Dialer } from './dialer.js'
import {
  encodeInstance,
  encodeSender,
  FRAME_REPLICA,
  FRAME_SENDER,
  frameHead,
  readFrames,
  type Sender,
  SENDER_FRAMES,
} from './framing.js'

const BACKOFF_FIRST_MS = 25
const BACKOFF_MAX_MS = 1000
const CONNECT_TIMEOUT_MS = 2000
/** After a connection that lasted at least this long, the first reconnect has no back-off. */
const STABLE_MS = 1000

export interface PeerConnectionOptions {
  readonly dialer: Dialer
  readonly host: string
  readonly port: number
  readonly queueBytesMax: number
  /** This member, as every connection introduces it at its start: a connection may be made before it is known. */
  readonly sender: () => (Sender & { readonly instance: string }) | undefined
  /** Called when the peer rejects this process, with the address of the instance that it accepts. */
  readonly onRefused: (other: string) => void
  /** Called when the connection ended and the peer no longer listens: its process has ended. */
  readonly onEnded?: (() => void) | undefined
}

/**
 * An outgoing connection to one peer. It connects when there is something to send, and reconnects with bounded back-off.
 * Frames that do not fit into the bounded queue are dropped: consensus resends what matters.
 */
export class PeerConnection {
  readonly #options: PeerConnectionOptions
  #socket: Socket | undefined
  #connected = false
  #connectedAt = 0
  /** The connection ended, and it is not known yet whether the process of the peer still runs. */
  #isProbing = false
  #queue: Uint8Array[] = []
  #queuedBytes = 0
  #backoffMs = BACKOFF_FIRST_MS
  #timer: NodeJS.Timeout | undefined
  #closed = false
  #dropped = 0

  constructor(options: PeerConnectionOptions) {
    this.#options = options
  }

  get droppedFrames(): number {
    return this.#dropped
  }

  send(frame: Uint8Array): void {
    if (this.#closed) return
    const waiting = this.#queuedBytes + (this.#socket?.writableLength ?? 0)
    if (waiting > 0 && waiting + frame.length > this.#options.queueBytesMax) {
      this.#dropped++
      return
    }
    if (this.#connected) return this.#write(frame)
    this.#queue.push(frame)
    this.#queuedBytes += frame.length
    if (this.#socket === undefined && this.#timer === undefined) this.#open()
  }

  #write(frame: Uint8Array, kind: number = FRAME_REPLICA): void {
    const socket = this.#socket as Socket
    socket.cork()
    socket.write(frameHead(kind, frame.length))
    socket.write(frame)
    // Sent immediately, not at the end of the turn: a blocking flush of the local log may run before that.
    socket.uncork()
  }

  #open(): void {
    const { dialer, host, port, onRefused } = this.#options
    const socket = dialer.dial(host, port)
    this.#socket = socket
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => {
      if (!this.#connected) socket.destroy(new Error('connection timeout'))
    })
    socket.once(dialer.ready, () => {
      socket.setTimeout(0)
      this.#connected = true
      this.#connectedAt = performance.now()
      const frames = this.#clearQueue()
      const sender = this.#options.sender()
      if (sender !== undefined) {
        this.#write(encodeSender(sender), FRAME_SENDER)
        this.#write(encodeInstance(sender.node, sender.instance), FRAME_SENDER)
      }
      for (const frame of frames) this.#write(frame)
    })
    // The only frame that a peer sends here is a rejection; reading also detects the end of the connection.
    readFrames(
      socket,
      () => SENDER_FRAMES,
      (_kind, content) => onRefused(Buffer.from(content).toString('utf8')),
    )
    let refused = false
    socket.once('error', (error: NodeJS.ErrnoException) => {
      refused = error.code === 'ECONNREFUSED'
    })
    socket.once('close', () => this.#disconnected(refused))
  }

  #disconnected(refused: boolean): void {
    const { onEnded } = this.#options
    const lived = this.#connected ? performance.now() - this.#connectedAt : undefined
    this.#socket = undefined
    this.#connected = false
    // Queued frames would arrive too late to be useful.
    this.#clearQueue()
    if (this.#closed) return
    // Probes at once whether the process of the peer still runs: an election may depend on the answer.
    this.#isProbing = onEnded !== undefined && !refused && (this.#isProbing || lived !== undefined)
    if (refused) onEnded?.()
    const isStable = lived !== undefined && lived >= STABLE_MS
    if (isStable) this.#backoffMs = BACKOFF_FIRST_MS
    const delay = isStable ? 0 : this.#backoffMs / 2 + Math.random() * (this.#backoffMs / 2)
    if (!isStable) this.#backoffMs = Math.min(BACKOFF_MAX_MS, this.#backoffMs * 2)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#queue.length > 0 || this.#isProbing) this.#open()
    }, delay)
    this.#timer.unref()
  }

  #clearQueue(): Uint8Array[] {
    const frames = this.#queue
    this.#queue = []
    this.#queuedBytes = 0
    return frames
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#queue = []
    this.#socket?.destroy()
  }
}
