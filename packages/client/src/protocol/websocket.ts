import {
  type ClientMessage,
  decodeServerMessages,
  InvalidError,
  UnavailableError,
  writeClientMessage,
  Writer,
} from '@leasehold/core'
import type { Channel, ChannelEvents, Connector } from './channel.js'

/** The part of a WebSocket that is used: the browser's, `ws`'s and every runtime's own have it. */
export interface WebSocketLike {
  binaryType: string
  readonly bufferedAmount: number
  send(data: Uint8Array): void
  close(code?: number): void
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
}

/** A frame is closed when it has this many bytes; one message may be larger. */
const FRAME_BYTES = 256 * 1024
const STREAM_PATH = '/v1/stream'

/** The stream's address of a service: `https://host/base` → `wss://host/base/v1/stream`. @throws InvalidError */
export function streamUrl(url: string): string {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch (error) {
    throw new InvalidError(`not a URL: ${JSON.stringify(url.slice(0, 80))}`, { cause: error })
  }
  const protocols: Record<string, string> = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }
  const protocol = protocols[parsed.protocol]
  if (protocol === undefined) throw new InvalidError(`a service is at http:// or https://, not ${parsed.protocol}//`)
  return `${protocol}//${parsed.host}${parsed.pathname.replace(/\/+$/, '')}${STREAM_PATH}${parsed.search}`
}

/**
 * Connections by WebSocket.
 *
 * @param open makes a WebSocket for an address: `(url) => new WebSocket(url)`
 */
export function webSocketConnector(open: (url: string) => WebSocketLike): Connector {
  return { connect: (url, events) => connect(open(streamUrl(url)), events) }
}

function connect(socket: WebSocketLike, events: ChannelEvents): Channel {
  let over = false
  let problem: Error | undefined
  const writer = new Writer(8192)
  const finish = (error: Error) => {
    if (over) return
    over = true
    events.closed(error)
  }
  // Node's default is kept: `ws` delivers bytes, and would copy them for an `ArrayBuffer`.
  if (socket.binaryType === 'blob') socket.binaryType = 'arraybuffer'
  socket.onopen = () => {
    if (!over) events.opened()
  }
  socket.onmessage = ((event: { data: unknown }) => {
    if (over) return
    try {
      events.received(decodeServerMessages(bytesOf(event.data)))
    } catch (error) {
      close(socket)
      finish(new UnavailableError('the service sent an invalid frame', { cause: error }))
    }
  }) as (event: never) => void
  // Without a listener, some implementations throw the error into the process.
  socket.onerror = ((event: { message?: unknown; error?: unknown }) => {
    if (event?.error instanceof Error) problem = event.error
    else if (typeof event?.message === 'string' && event.message !== '') problem = new UnavailableError(event.message)
  }) as (event: never) => void
  socket.onclose = ((event: { code?: number; reason?: string }) => {
    const reason = event?.reason ? `: ${event.reason}` : ''
    finish(problem ?? new UnavailableError(`closed with code ${event?.code ?? 'unknown'}${reason}`))
  }) as (event: never) => void
  // A value that cannot be encoded, such as text with lone surrogates: this message fails as if the service had refused it.
  const refuse = (message: ClientMessage, error: unknown) => {
    if (message.kind === 'hello') throw error
    const text = error instanceof Error ? error.message : String(error)
    const refused = { kind: 'refused', code: 'invalid', message: text } as const
    const { correlation } = message
    void Promise.resolve().then(() => over || events.received([{ kind: 'error', correlation, refused, leaderUrl: '' }]))
  }
  return {
    get buffered() {
      return socket.bufferedAmount
    },
    send(messages) {
      if (over) return
      try {
        for (const frame of framesOf(writer, messages, refuse)) socket.send(frame)
      } catch (error) {
        problem ??= error as Error
        close(socket)
      }
    },
    close() {
      over = true
      close(socket)
    },
  }
}

function* framesOf(
  writer: Writer,
  messages: readonly ClientMessage[],
  refuse: (message: ClientMessage, error: unknown) => void,
): Generator<Uint8Array> {
  writer.reset()
  for (const message of messages) {
    try {
      writeClientMessage(writer, message)
    } catch (error) {
      refuse(message, error)
      continue
    }
    if (writer.length < FRAME_BYTES) continue
    yield writer.take()
    writer.reset()
  }
  if (writer.length > 0) yield writer.take()
}

function bytesOf(data: unknown): Uint8Array {
  if (data instanceof ArrayBuffer) return new Uint8Array(data)
  if (data instanceof Uint8Array) return data
  throw new UnavailableError(`a frame is binary, not a ${typeof data}`)
}

function close(socket: WebSocketLike): void {
  try {
    socket.close(1000)
  } catch {
    // It is closing already, or was never open.
  }
}
