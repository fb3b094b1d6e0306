import {
  decodeClientMessages,
  encodeServerMessages,
  type Hello,
  LeaseholdError,
  type LockState,
  type Refused,
  type ServerMessage,
} from '@leasehold/core'
import type { ServiceStream, StreamHub } from '@leasehold/replica'
import type { WebSocket } from 'ws'
import {
  HELLO_TIMEOUT_MS,
  PING_INTERVAL_MS,
  STREAM_CLOSE_MS,
  STREAM_FRAME_MESSAGES,
  UNSENT_BYTES_MAX,
} from './bounds.js'
import type { Services } from './services.js'
import { accessOf } from './stream-access.js'

/** WebSocket close codes: RFC 6455, section 7.4.1. */
const PROTOCOL_ERROR = 1002
const WRONG_DATA = 1003
const TRY_LATER = 1013
const SERVER_ERROR = 1011

/**
 * One client's stream: frames in, messages to the transport-free service, messages out, several per frame.
 *
 * *open* → *closing* (a close frame was sent, nothing is read any more) → *closed*. A frame that is no frame of ours, a
 * client that does not read, and one that does not answer pings lead to closing; sessions are not touched by that.
 */
export class StreamConnection {
  readonly #service: ServiceStream<LockState>
  #apiKey = ''
  #reading = true
  #alive = true
  readonly #ping: NodeJS.Timeout
  readonly #hello: NodeJS.Timeout
  #sentSoon: NodeJS.Immediate | undefined
  /** An error is told by the socket's own event. A turn later: whoever reads fast must not keep the others waiting. */
  readonly #sent = (): void => {
    if (this.#sentSoon !== undefined) return
    this.#sentSoon = setImmediate(() => {
      this.#sentSoon = undefined
      this.#service.sent()
    })
  }

  constructor(
    readonly socket: WebSocket,
    readonly services: Services,
    hub: StreamHub<LockState>,
    readonly remote: string,
    closed: () => void,
  ) {
    this.#service = hub.open({
      emit: (messages) => this.#send(messages),
      backlog: () => this.socket.bufferedAmount,
      end: (why) => this.#fail(PROTOCOL_ERROR, why),
      authenticate: (hello) => this.#authenticate(hello),
      authorize: (message) => this.#authorize(message),
    })
    this.#ping = setInterval(() => this.#checkPeer(), PING_INTERVAL_MS)
    this.#hello = setTimeout(() => this.#fail(PROTOCOL_ERROR, 'no hello'), HELLO_TIMEOUT_MS)
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#received(data, isBinary))
    socket.on('pong', () => {
      this.#alive = true
    })
    socket.on('error', (error) => {
      services.log.info('a stream has failed', { remote, error: error.message })
    })
    socket.on('close', () => {
      this.#reading = false
      clearInterval(this.#ping)
      clearTimeout(this.#hello)
      clearImmediate(this.#sentSoon)
      this.#service.close()
      closed()
    })
  }

  stopReading(): void {
    this.#reading = false
  }

  /** Sends what is left, then the close frame; cuts the connection when the peer does not answer it. */
  close(code: number, reason: string, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#reading = false
      const timer = setTimeout(() => this.socket.terminate(), timeoutMs)
      this.socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
      if (this.socket.readyState === this.socket.CLOSED) {
        clearTimeout(timer)
        resolve()
      } else this.socket.close(code, reason)
    })
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (!this.#reading) return
    this.#alive = true
    if (!isBinary) {
      this.#fail(WRONG_DATA, 'frames are binary')
      return
    }
    try {
      this.#service.receive(decodeClientMessages(data))
    } catch (error) {
      this.#broken(error)
    }
  }

  /** One error about the connection, then its end. */
  #broken(error: unknown): void {
    const known = error instanceof LeaseholdError
    if (!known) {
      const stack = error instanceof Error ? error.stack : String(error)
      this.services.log.error('a stream was closed by an error of the server', { remote: this.remote, error: stack })
    }
    const message = known ? error.message : 'the server failed'
    const refused = { kind: 'refused', code: known ? error.code : 'unknown-outcome', message } as const
    this.#send([{ kind: 'error', correlation: 0, refused, leaderUrl: '' }])
    this.#fail(known ? PROTOCOL_ERROR : SERVER_ERROR, known ? 'not a frame of this protocol' : 'the server failed')
  }

  #fail(code: number, reason: string): void {
    this.services.log.info('a stream is closed', { remote: this.remote, code, reason })
    void this.close(code, reason, STREAM_CLOSE_MS)
  }

  #send(messages: readonly ServerMessage[]): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    try {
      for (let i = 0; i < messages.length; i += STREAM_FRAME_MESSAGES) {
        this.socket.send(encodeServerMessages(messages.slice(i, i + STREAM_FRAME_MESSAGES)), this.#sent)
      }
    } catch (error) {
      this.services.log.error('a message could not be encoded', { remote: this.remote, error: String(error) })
      this.#fail(SERVER_ERROR, 'the server failed')
      return
    }
    if (this.#reading && this.socket.bufferedAmount > UNSENT_BYTES_MAX)
      this.#fail(TRY_LATER, 'the client reads too slowly')
  }

  #authenticate(hello: Hello): Refused | undefined {
    this.#apiKey = hello.apiKey
    clearTimeout(this.#hello)
    return undefined
  }

  #authorize(message: Parameters<typeof accessOf>[0]): Refused | undefined {
    const access = accessOf(message)
    if (access === undefined) return undefined
    try {
      this.services.authorize({ ...access, apiKey: this.#apiKey, remote: this.remote })
      return undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      const { code, message: text, hint } = error
      return { kind: 'refused', code, message: text, ...(hint === undefined ? {} : { hint }) }
    }
  }

  #checkPeer(): void {
    if (!this.#alive) {
      this.socket.terminate()
      return
    }
    this.#alive = false
    this.socket.ping()
  }
}
