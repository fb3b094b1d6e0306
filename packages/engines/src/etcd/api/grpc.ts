import type { IncomingHttpHeaders } from 'node:http'
import { connect, type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2'
import type { ConnectionOptions } from 'node:tls'

/** The failure of a call. `code` is gRPC's, 14 when the connection itself has failed. */
export class CallError extends Error {
  constructor(
    readonly code: number,
    message: string,
    /** Whether the server may have received the request. */
    readonly sent: boolean,
    /** The connection that failed with it; undefined: it is still usable. */
    readonly connection: GrpcConnection | undefined,
  ) {
    super(message)
  }
}

export const CODE = {
  cancelled: 1,
  unknown: 2,
  deadline: 4,
  notFound: 5,
  denied: 7,
  unavailable: 14,
  unauthenticated: 16,
}

const FRAME_HEAD_BYTES = 5
/** Largest answer in bytes. */
const MESSAGE_BYTES_MAX = 256 * 1024 * 1024
const WINDOW_BYTES = 4 * 1024 * 1024

export interface StreamEvents {
  message(body: Buffer): void
  /** The stream has ended. Called once. */
  ended(error: CallError): void
}

export interface GrpcStream {
  send(body: Buffer): void
  /** No `ended` follows. */
  cancel(): void
}

/**
 * One HTTP/2 connection to one member, and gRPC calls on it. It never keeps the process alive: waiting callers have timers
 * that do.
 */
export class GrpcConnection {
  /** When the first call since the last answer was made; undefined: no call is open. */
  openSinceMs: number | undefined
  isPinged = false
  readonly #session: ClientHttp2Session
  readonly #onEnd: () => void
  #connected = false
  #closing = false
  #error: Error | undefined

  constructor(
    readonly url: string,
    tls: ConnectionOptions,
    onEnd: () => void,
  ) {
    this.#onEnd = onEnd
    this.#session = connect(url, { ...tls, settings: { initialWindowSize: WINDOW_BYTES } })
    this.#session.unref()
    this.#session.on('connect', () => {
      if (!this.usable) return
      this.#connected = true
      this.#session.setLocalWindowSize(WINDOW_BYTES)
      this.#session.unref()
    })
    this.#session.on('error', (error) => {
      this.#error ??= error
    })
    this.#session.on('goaway', () => this.close(new Error('the member has closed the connection')))
    this.#session.on('close', () => this.#onEnd())
  }

  /** Whether it was ever connected: then requests may have arrived. */
  get connected(): boolean {
    return this.#connected
  }

  get usable(): boolean {
    return !this.#closing && !this.#session.closed && !this.#session.destroyed
  }

  /** Pings the member. A broken connection does not answer. */
  ping(answered: () => void): void {
    this.#session.ping((error) => {
      if (error === null) answered()
    })
  }

  /**
   * Breaks the connection and everything on it, in a later turn: the caller may have been called while a frame was
   * read, and Node 20 damages the memory of its process when a session is destroyed in the middle of that.
   */
  close(error?: Error): void {
    this.#error ??= error
    if (this.#closing) return
    this.#closing = true
    setImmediate(() => this.#session.destroy())
  }

  /** Resolves with the first message of the answer. */
  unary(path: string, body: Buffer, headers: Record<string, string>): { answer: Promise<Buffer>; cancel: () => void } {
    let stream: GrpcStream | undefined
    const answer = new Promise<Buffer>((resolve, reject) => {
      let first: Buffer | undefined
      stream = this.stream(path, headers, {
        message: (message) => {
          first ??= message
          // A lease stream stays open: its first message is the answer here.
          resolve(message)
        },
        ended: (error) => (first === undefined ? reject(error) : undefined),
      })
      stream.send(body)
    })
    return { answer: answer.finally(() => stream?.cancel()), cancel: () => stream?.cancel() }
  }

  stream(path: string, headers: Record<string, string>, events: StreamEvents): GrpcStream {
    let over = false
    let sent = false
    const end = (error: CallError): void => {
      if (over) return
      over = true
      events.ended(error)
    }
    let stream: ClientHttp2Stream
    try {
      stream = this.#session.request(
        { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc', ...headers },
        { endStream: false },
      )
    } catch (error) {
      queueMicrotask(() => end(this.#failure(error, false)))
      return { send: () => {}, cancel: () => (over = true) }
    }
    const trailers = (found: IncomingHttpHeaders): void => {
      const { 'grpc-status': status, 'grpc-message': message = '' } = found
      if (status === undefined) return
      const text = typeof message === 'string' ? decodeURIComponent(message) : ''
      end(new CallError(Number(status), Number(status) === 0 ? 'the stream has ended' : text, sent, this))
    }
    stream.on('response', trailers)
    stream.on('trailers', trailers)
    stream.on('error', (error) => end(this.#failure(error, sent)))
    stream.on('close', () => end(this.#failure(undefined, sent)))
    readFrames(stream, (body) => over || events.message(body))
    return {
      send: (body) => {
        if (over || stream.destroyed) return
        sent = this.#connected || sent
        stream.write(framed(body))
      },
      cancel: () => {
        over = true
        if (!stream.destroyed && !this.#session.destroyed) stream.close(constants.NGHTTP2_CANCEL)
      },
    }
  }

  #failure(cause: unknown, sent: boolean): CallError {
    const reason = this.#error ?? cause
    const text = reason instanceof Error ? reason.message : 'the connection broke'
    return new CallError(CODE.unavailable, text, sent || this.#connected, this)
  }
}

function framed(body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + body.length)
  frame[0] = 0
  frame.writeUInt32BE(body.length, 1)
  body.copy(frame, FRAME_HEAD_BYTES)
  return frame
}

function readFrames(stream: ClientHttp2Stream, message: (body: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length >= FRAME_HEAD_BYTES) {
      const length = rest.readUInt32BE(1)
      if (rest[0] !== 0 || length > MESSAGE_BYTES_MAX) {
        stream.destroy(new Error('an answer that is compressed or too large'))
        return
      }
      if (rest.length < FRAME_HEAD_BYTES + length) return
      const body = rest.subarray(FRAME_HEAD_BYTES, FRAME_HEAD_BYTES + length)
      rest = rest.subarray(FRAME_HEAD_BYTES + length)
      message(body)
    }
  })
}
