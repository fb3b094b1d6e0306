import {
  AccessError,
  type Command,
  decodeClientMessages,
  isAudited,
  LeaseholdError,
  type LockState,
  permissionOf,
  type Refused,
  type ServerMessage,
  Writer,
  writeServerMessage,
} from '@leasehold/core'
import type { ServiceStream, StreamHub } from '@leasehold/replica'
import type { WebSocket } from 'ws'
import {
  FRAME_BYTES_MAX,
  HELLO_TIMEOUT_MS,
  PING_INTERVAL_MS,
  STREAM_CLOSE_MS,
  STREAM_FRAME_MESSAGES,
  UNSENT_BYTES_MAX,
} from '../limits.js'
import { namesOfHold } from '../state-queries.js'
import { PendingRequests } from './pending-requests.js'
import type { Caller, Credentials } from '../security/index.js'
import type { Services } from '../http/index.js'

/** WebSocket close codes: RFC 6455, section 7.4.1. */
const PROTOCOL_ERROR = 1002
const WRONG_DATA = 1003
const TRY_LATER = 1013
const SERVER_ERROR = 1011

/** Far below what makes reads wait. */
const SMALL_FRAME_BYTES = 16 * 1024

/**
 * One client's stream: frames in, messages to the transport-free service, messages out, several per frame.
 *
 * *open* → *closing* (a close frame was sent, nothing is read any more) → *closed*. A frame that is no frame of ours, a
 * client that does not read, and one that does not answer pings lead to closing; sessions are not touched by that.
 */
export class StreamConnection {
  readonly #service: ServiceStream<LockState>
  #caller: Caller | undefined
  /** Frames that came while the credentials of `hello` were looked at; undefined: they have been. */
  #early: Buffer[] | undefined = []
  #earlyBytes = 0
  #reading = true
  #alive = true
  readonly #ping: NodeJS.Timeout
  readonly #hello: NodeJS.Timeout
  #sentSoon: NodeJS.Immediate | undefined
  readonly #questions = new PendingRequests()
  readonly #welcomed: () => void
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
    readonly from: Omit<Credentials, 'key'>,
    on: { readonly welcomed: () => void; readonly closed: () => void },
  ) {
    this.#welcomed = on.welcomed
    this.#service = hub.open({
      emit: (messages) => this.#send(messages),
      backlog: () => this.socket.bufferedAmount,
      end: (why) => this.#fail(PROTOCOL_ERROR, why),
      authorize: (message) => this.#authorize(message),
      watchEnds: (prefix) => this.#watchEnds(prefix),
      mayRead: (name) => services.access.mayRead(this.#caller as Caller, name),
    })
    this.#ping = setInterval(() => this.#checkPeer(), PING_INTERVAL_MS)
    this.#hello = setTimeout(() => this.#fail(PROTOCOL_ERROR, 'no hello'), HELLO_TIMEOUT_MS)
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#received(data, isBinary))
    socket.on('pong', () => {
      this.#alive = true
    })
    socket.on('error', (error) => {
      services.log.info('a stream has failed', { remote: from.remote, error: error.message })
    })
    socket.on('close', () => {
      this.#reading = false
      clearInterval(this.#ping)
      clearTimeout(this.#hello)
      clearImmediate(this.#sentSoon)
      this.#service.close()
      this.#questions.close()
      on.welcomed()
      on.closed()
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
    if (this.#early !== undefined) return this.#beforeWelcome(data)
    this.#take(data)
  }

  #take(data: Buffer): void {
    try {
      this.#service.receive(decodeClientMessages(data))
    } catch (error) {
      this.#broken(error)
    }
  }

  /** The first frame begins with `hello`: nothing is done before its credentials are known to be good. */
  #beforeWelcome(data: Buffer): void {
    const early = this.#early as Buffer[]
    this.#earlyBytes += data.length
    if (this.#earlyBytes > FRAME_BYTES_MAX) return this.#fail(PROTOCOL_ERROR, 'too much before the welcome')
    early.push(data)
    if (early.length > 1) return
    clearTimeout(this.#hello)
    let key = ''
    try {
      const [first] = decodeClientMessages(data)
      if (first?.kind === 'hello') key = first.apiKey
    } catch (error) {
      return this.#broken(error)
    }
    this.services.access.authenticate({ ...this.from, key }).then(
      (caller) => {
        this.#caller = caller
        this.#early = undefined
        this.#welcomed()
        for (const frame of early) if (this.#reading) this.#take(frame)
      },
      (error: unknown) => this.#broken(error),
    )
  }

  /** One error about the connection, then its end. */
  #broken(error: unknown): void {
    const known = error instanceof LeaseholdError
    if (!known) {
      const stack = error instanceof Error ? error.stack : String(error)
      this.services.log.error('a stream was closed by an error of the server', {
        remote: this.from.remote,
        error: stack,
      })
    }
    const message = known ? error.message : 'the server failed'
    const refused = { kind: 'refused', code: known ? error.code : 'unknown-outcome', message } as const
    this.#send([{ kind: 'error', correlation: 0, refused, leaderUrl: '' }])
    const reason =
      error instanceof AccessError
        ? 'credentials refused'
        : known
          ? 'not a frame of this protocol'
          : 'the server failed'
    this.#fail(known ? PROTOCOL_ERROR : SERVER_ERROR, reason)
  }

  #fail(code: number, reason: string): void {
    this.services.log.info('a stream is closed', { remote: this.from.remote, code, reason })
    void this.close(code, reason, STREAM_CLOSE_MS)
  }

  #send(messages: readonly ServerMessage[]): void {
    this.#learn(messages)
    this.#questions.look(messages)
    if (this.socket.readyState !== this.socket.OPEN) return
    try {
      for (let i = 0; i < messages.length; i += STREAM_FRAME_MESSAGES) {
        const part = messages.length <= STREAM_FRAME_MESSAGES ? messages : messages.slice(i, i + STREAM_FRAME_MESSAGES)
        this.#sendFrame(frameOf(part))
      }
    } catch (error) {
      this.services.log.error('a message could not be encoded', { remote: this.from.remote, error: String(error) })
      this.#fail(SERVER_ERROR, 'the server failed')
      return
    }
    if (this.#reading && this.socket.bufferedAmount > UNSENT_BYTES_MAX)
      this.#fail(TRY_LATER, 'the client reads too slowly')
  }

  /** Asks for word of its having left only where reads may wait for that: it costs a turn of the event loop. */
  #sendFrame(frame: Buffer): void {
    const isSmall = frame.length < SMALL_FRAME_BYTES && this.socket.bufferedAmount === 0
    if (isSmall && !this.#service.awaitsSent) this.socket.send(frame)
    else this.socket.send(frame, this.#sent)
  }

  #authorize(message: Parameters<typeof permissionOf>[0]): Refused | undefined {
    const { access: control, clients, replica, metrics } = this.services
    const caller = this.#caller as Caller
    metrics.asked(message.kind === 'command' ? message.command.kind : message.kind)
    const access = permissionOf(message, (hold) => namesOfHold(replica.member.stale().state, hold))
    if (access === undefined) return undefined
    try {
      control.authorize(caller, access, access.cost)
      if (message.kind === 'command') {
        const { command, correlation } = message
        if (command.kind === 'openSession') {
          this.#questions.add(correlation, clients.opens(caller, command.nonce), true)
        } else if (command.kind === 'acquire' && command.waitMs !== 0 && clients.limitsWaiters) {
          this.#questions.add(correlation, clients.waits(caller), false)
        }
        this.#audit(command)
      }
      return undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      metrics.refused(error.code)
      return refusedOf(error)
    }
  }

  #watchEnds(prefix: string): Refused | undefined {
    const error = this.services.access.ends(this.#caller as Caller, { verb: 'read', names: [prefix] })
    return error && refusedOf(error)
  }

  /** What operators do is written before it is done. */
  #audit(command: Command): void {
    if (!isAudited(command)) return
    const principal = (this.#caller as Caller).principal.id
    this.services.audit?.write({ event: 'admin', verb: command.kind, principal, remote: this.from.remote })
  }

  /** Sessions that are bound to this connection are its caller's. */
  #learn(messages: readonly ServerMessage[]): void {
    const isBinding = messages.some(
      (one) => one.kind === 'attached' || (one.kind === 'result' && one.result.kind === 'opened'),
    )
    if (!isBinding || this.#caller === undefined) return
    for (const session of this.#service.sessions) this.services.clients.learn(session, this.#caller)
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

/** A frame is written here and copied out at once. */
const scratch = new Writer(8192)

/** A `Buffer`, which comes from Node's pool and goes into the socket as it is: cheaper than an array of its own. */
function frameOf(messages: readonly ServerMessage[]): Buffer {
  scratch.reset()
  for (const message of messages) writeServerMessage(scratch, message)
  return Buffer.from(scratch.peek())
}

function refusedOf({ code, message, hint }: LeaseholdError): Refused {
  return { kind: 'refused', code, message, ...(hint === undefined ? {} : { hint }) }
}
