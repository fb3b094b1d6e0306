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

/** Far below the backlog that delays reads. */
const SMALL_FRAME_BYTES = 16 * 1024

/**
 * The stream of one client: passes the messages of its frames to the transport-independent service, and sends the
 * messages of the service, several per frame.
 *
 * *open* → *closing* (a close frame was sent, and frames are no longer read) → *closed*. A malformed frame, a client that
 * reads too slowly, and one that does not answer pings close the stream; the sessions of the client stay open.
 */
export class StreamConnection {
  readonly #socket: WebSocket
  readonly #services: Services
  readonly #from: Omit<Credentials, 'key'>
  readonly #service: ServiceStream<LockState>
  #caller: Caller | undefined
  /** Frames that arrived while the credentials of `hello` were verified; undefined once the caller is authenticated. */
  #preauth: Buffer[] | undefined = []
  #preauthBytes = 0
  #reading = true
  #alive = true
  readonly #ping: NodeJS.Timeout
  readonly #hello: NodeJS.Timeout
  #sentSoon: NodeJS.Immediate | undefined
  readonly #pending = new PendingRequests()
  readonly #welcomed: () => void
  /** Reports sent frames one turn of the event loop later, so that a fast reader does not starve other clients. */
  readonly #sent = (): void => {
    if (this.#sentSoon !== undefined) return
    this.#sentSoon = setImmediate(() => {
      this.#sentSoon = undefined
      this.#service.sent()
    })
  }

  constructor(
    socket: WebSocket,
    services: Services,
    hub: StreamHub<LockState>,
    from: Omit<Credentials, 'key'>,
    on: { readonly welcomed: () => void; readonly closed: () => void },
  ) {
    this.#socket = socket
    this.#services = services
    this.#from = from
    this.#welcomed = on.welcomed
    this.#service = hub.open({
      emit: (messages) => this.#send(messages),
      backlog: () => this.#socket.bufferedAmount,
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
      services.log.info('a stream failed', { remote: from.remote, error: error.message })
    })
    socket.on('close', () => {
      this.#reading = false
      clearInterval(this.#ping)
      clearTimeout(this.#hello)
      clearImmediate(this.#sentSoon)
      this.#service.close()
      this.#pending.close()
      on.welcomed()
      on.closed()
    })
  }

  stopReading(): void {
    this.#reading = false
  }

  /** Flushes, sends the close frame, and cuts the connection if the client does not answer it within `timeoutMs`. */
  close(code: number, reason: string, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#reading = false
      const timer = setTimeout(() => this.#socket.terminate(), timeoutMs)
      this.#socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
      if (this.#socket.readyState === this.#socket.CLOSED) {
        clearTimeout(timer)
        resolve()
      } else this.#socket.close(code, reason)
    })
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (!this.#reading) return
    this.#alive = true
    if (!isBinary) {
      this.#fail(WRONG_DATA, 'frames are binary')
      return
    }
    if (this.#preauth !== undefined) return this.#receiveBeforeWelcome(data)
    this.#receive(data)
  }

  #receive(data: Buffer): void {
    try {
      this.#service.receive(decodeClientMessages(data))
    } catch (error) {
      this.#failWith(error)
    }
  }

  /** Buffers frames until the credentials in `hello`, at the start of the first frame, are verified. */
  #receiveBeforeWelcome(data: Buffer): void {
    const frames = this.#preauth as Buffer[]
    this.#preauthBytes += data.length
    if (this.#preauthBytes > FRAME_BYTES_MAX) return this.#fail(PROTOCOL_ERROR, 'too many bytes before the welcome')
    frames.push(data)
    if (frames.length > 1) return
    clearTimeout(this.#hello)
    let key = ''
    try {
      const [first] = decodeClientMessages(data)
      if (first?.kind === 'hello') key = first.apiKey
    } catch (error) {
      return this.#failWith(error)
    }
    this.#services.access.authenticate({ ...this.#from, key }).then(
      (caller) => {
        this.#caller = caller
        this.#preauth = undefined
        this.#welcomed()
        for (const frame of frames) if (this.#reading) this.#receive(frame)
      },
      (error: unknown) => this.#failWith(error),
    )
  }

  /** Sends one error about the connection, then closes it. */
  #failWith(error: unknown): void {
    const known = error instanceof LeaseholdError
    if (!known) {
      const stack = error instanceof Error ? error.stack : String(error)
      this.#services.log.error('closing a stream after an internal error', {
        remote: this.#from.remote,
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
    this.#services.log.info('closing a stream', { remote: this.#from.remote, code, reason })
    void this.close(code, reason, STREAM_CLOSE_MS)
  }

  #send(messages: readonly ServerMessage[]): void {
    this.#recordOwners(messages)
    this.#pending.remove(messages)
    if (this.#socket.readyState !== this.#socket.OPEN) return
    try {
      for (let i = 0; i < messages.length; i += STREAM_FRAME_MESSAGES) {
        const part = messages.length <= STREAM_FRAME_MESSAGES ? messages : messages.slice(i, i + STREAM_FRAME_MESSAGES)
        this.#sendFrame(frameOf(part))
      }
    } catch (error) {
      this.#services.log.error('cannot encode a message', { remote: this.#from.remote, error: String(error) })
      this.#fail(SERVER_ERROR, 'the server failed')
      return
    }
    if (this.#reading && this.#socket.bufferedAmount > UNSENT_BYTES_MAX)
      this.#fail(TRY_LATER, 'the client reads too slowly')
  }

  /** Requests the `sent` callback only if reads may wait for it, because it costs a turn of the event loop. */
  #sendFrame(frame: Buffer): void {
    const isSmall = frame.length < SMALL_FRAME_BYTES && this.#socket.bufferedAmount === 0
    if (isSmall && !this.#service.awaitsSent) this.#socket.send(frame)
    else this.#socket.send(frame, this.#sent)
  }

  #authorize(message: Parameters<typeof permissionOf>[0]): Refused | undefined {
    const { access: control, quotas, replica, metrics } = this.#services
    const caller = this.#caller as Caller
    metrics.countRequest(message.kind === 'command' ? message.command.kind : message.kind)
    const access = permissionOf(message, (hold) => namesOfHold(replica.member.stale().state, hold))
    if (access === undefined) return undefined
    try {
      control.authorize(caller, access, access.cost)
      if (message.kind === 'command') {
        const { command, correlation } = message
        if (command.kind === 'openSession') {
          this.#pending.add(correlation, quotas.reserveSession(caller, command.nonce), true)
        } else if (command.kind === 'acquire' && command.waitMs !== 0 && quotas.limitsWaiters) {
          this.#pending.add(correlation, quotas.reserveWaiter(caller), false)
        }
        this.#audit(command)
      }
      return undefined
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error
      metrics.countRefusal(error.code)
      return refusedOf(error)
    }
  }

  #watchEnds(prefix: string): Refused | undefined {
    const error = this.#services.access.revocationOf(this.#caller as Caller, { verb: 'read', names: [prefix] })
    return error && refusedOf(error)
  }

  /** Writes the commands of operators to the audit log before they are submitted. */
  #audit(command: Command): void {
    if (!isAudited(command)) return
    const principal = (this.#caller as Caller).principal.id
    this.#services.audit?.write({ event: 'admin', verb: command.kind, principal, remote: this.#from.remote })
  }

  /** Records the caller as the owner of the sessions that are attached to this connection. */
  #recordOwners(messages: readonly ServerMessage[]): void {
    const isBinding = messages.some(
      (one) => one.kind === 'attached' || (one.kind === 'result' && one.result.kind === 'opened'),
    )
    if (!isBinding || this.#caller === undefined) return
    for (const session of this.#service.sessions) this.#services.quotas.recordOwner(session, this.#caller)
  }

  #checkPeer(): void {
    if (!this.#alive) {
      this.#socket.terminate()
      return
    }
    this.#alive = false
    this.#socket.ping()
  }
}

/** Reused for every frame; its content is copied immediately. */
const scratch = new Writer(8192)

/** Encodes the messages into a `Buffer` from Node's pool, which the socket sends without a copy. */
function frameOf(messages: readonly ServerMessage[]): Buffer {
  scratch.reset()
  for (const message of messages) writeServerMessage(scratch, message)
  return Buffer.from(scratch.peek())
}

function refusedOf({ code, message, hint }: LeaseholdError): Refused {
  return { kind: 'refused', code, message, ...(hint === undefined ? {} : { hint }) }
}
