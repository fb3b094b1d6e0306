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
/** A connection that lived so long was a good one: the next is made without back-off. */
const STABLE_MS = 1000

/**
 * One way to one peer: a connection of its own that is made when there is something to send, and made again, with bounded
 * back-off, when it breaks. What does not fit into the bounded queue is dropped: consensus repeats what matters.
 */
export class PeerConnection {
  private socket: Socket | undefined
  private connected = false
  private connectedAt = 0
  /** The connection ended, and why is not known yet. */
  private asking = false
  private queue: Uint8Array[] = []
  private queued = 0
  private backoffMs = BACKOFF_FIRST_MS
  private timer: NodeJS.Timeout | undefined
  private closed = false
  private dropped = 0

  constructor(
    private readonly dialer: Dialer,
    private readonly host: string,
    private readonly port: number,
    private readonly queueBytesMax: number,
    /** Said first on every connection. */
    private readonly sender: (Sender & { readonly instance: string }) | undefined,
    /** The peer takes nothing from this process; the text is the address of the instance that it listens to. */
    private readonly refused: (other: string) => void,
    /** The connection has ended, and nobody listens there any more: the peer's process is gone. */
    private readonly ended?: () => void,
  ) {}

  get droppedFrames(): number {
    return this.dropped
  }

  send(frame: Uint8Array): void {
    if (this.closed) return
    const waiting = this.queued + (this.socket?.writableLength ?? 0)
    if (waiting > 0 && waiting + frame.length > this.queueBytesMax) {
      this.dropped++
      return
    }
    if (this.connected) return this.write(frame)
    this.queue.push(frame)
    this.queued += frame.length
    if (this.socket === undefined && this.timer === undefined) this.open()
  }

  private write(frame: Uint8Array, kind: number = FRAME_REPLICA): void {
    const socket = this.socket as Socket
    socket.cork()
    socket.write(frameHead(kind, frame.length))
    socket.write(frame)
    // Now, not at the end of the turn: a blocking flush of the own log may come before that.
    socket.uncork()
  }

  private open(): void {
    const socket = this.dialer.dial(this.host, this.port)
    this.socket = socket
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => {
      if (!this.connected) socket.destroy(new Error('no connection in time'))
    })
    socket.once(this.dialer.ready, () => {
      socket.setTimeout(0)
      this.connected = true
      this.connectedAt = performance.now()
      const { queue } = this
      this.queue = []
      this.queued = 0
      if (this.sender !== undefined) {
        this.write(encodeSender(this.sender), FRAME_SENDER)
        this.write(encodeInstance(this.sender.node, this.sender.instance), FRAME_SENDER)
      }
      for (const frame of queue) this.write(frame)
    })
    // The peer says nothing here but that it refuses; reading notices its end.
    readFrames(socket, SENDER_FRAMES, (_kind, content) => this.refused(Buffer.from(content).toString('utf8')))
    let refused = false
    socket.once('error', (error: NodeJS.ErrnoException) => {
      refused = error.code === 'ECONNREFUSED'
    })
    socket.once('close', () => this.broken(refused))
  }

  private broken(refused: boolean): void {
    const lived = this.connected ? performance.now() - this.connectedAt : undefined
    this.socket = undefined
    this.connected = false
    // Old frames would arrive late and in vain.
    this.queue = []
    this.queued = 0
    if (this.closed) return
    // Whether the peer's process is still there is asked at once: the others wait for this answer more than for any other.
    this.asking = this.ended !== undefined && !refused && (this.asking || lived !== undefined)
    if (refused) this.ended?.()
    const isStable = lived !== undefined && lived >= STABLE_MS
    if (isStable) this.backoffMs = BACKOFF_FIRST_MS
    const delay = isStable ? 0 : this.backoffMs / 2 + Math.random() * (this.backoffMs / 2)
    if (!isStable) this.backoffMs = Math.min(BACKOFF_MAX_MS, this.backoffMs * 2)
    this.timer = setTimeout(() => {
      this.timer = undefined
      if (this.queue.length > 0 || this.asking) this.open()
    }, delay)
    this.timer.unref()
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
    this.queue = []
    this.socket?.destroy()
  }
}
