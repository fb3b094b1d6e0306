import type { Channel, ChannelEvents, Connector } from '@leasehold/client'
import {
  type ClientMessage,
  CodecError,
  decodeClientMessages,
  decodeServerMessages,
  encodeClientMessages,
  encodeServerMessages,
  type Grant,
  type ServerMessage,
} from '@leasehold/core'
import type { StreamHub, StreamPeer } from '@leasehold/replica'
import type { Label } from '../network/datagrams.js'
import type { Process } from '../process.js'

const PORT = 'clients'

/** The client's way to members: connections of the world, with the real frames on them. URLs are `http://MACHINE`. */
export class StreamConnector implements Connector {
  readonly #process: Process

  constructor(process: Process) {
    this.#process = process
  }

  connect(url: string, events: ChannelEvents): Channel {
    const { network } = this.#process.world
    const machine = machineOf(url)
    const connection = network.connect(
      this.#process,
      { machine, port: PORT },
      {
        opened: () => events.opened(),
        received: (bytes) => {
          const messages = decoded(bytes, decodeServerMessages)
          if (messages instanceof Error) {
            connection.close()
            events.closed(messages)
          } else events.received(messages)
        },
        closed: (error) => events.closed(error),
      },
    )
    return {
      get buffered() {
        return connection.buffered
      },
      send: (messages) =>
        connection.send(encodeClientMessages(messages), network.wantsLabels ? clientLabel(messages) : undefined),
      close: () => connection.close(),
    }
  }
}

/** Looks on at one stream of a member. */
export interface StreamObserver {
  received(messages: readonly ClientMessage[]): void
  /** Before they leave. */
  sent(messages: readonly ServerMessage[]): void
}

/** Decides what is permitted on one connection. */
export type StreamAccess = Pick<StreamPeer, 'authenticate' | 'authorize' | 'watchEnds'>

/** Lets clients connect to a member's hub at its machine. `observe` and `access` are called for each connection. */
export function serveStreams<State>(
  process: Process,
  hub: StreamHub<State>,
  observe?: () => StreamObserver,
  access?: () => StreamAccess,
): () => void {
  const { network } = process.world
  return network.listen(process, PORT, (connection) => {
    const observer = observe?.()
    const stream = hub.open({
      ...access?.(),
      emit: (messages) => {
        observer?.sent(messages)
        connection.send(encodeServerMessages(messages), network.wantsLabels ? serverLabel(messages) : undefined)
      },
      end: () => {
        connection.close()
        // Not inside the call of the stream itself.
        process.soon(() => stream.close())
      },
    })
    return {
      received: (bytes) => {
        const messages = decoded(bytes, decodeClientMessages)
        if (!(messages instanceof Error)) {
          observer?.received(messages)
          return stream.receive(messages)
        }
        connection.close()
        stream.close()
      },
      closed: () => stream.close(),
    }
  })
}

function machineOf(url: string): string {
  const match = /^[a-z]+:\/\/([^/:]+)/.exec(url)
  if (match === null) throw new Error(`no machine in the URL ${url}`)
  return match[1] as string
}

function decoded<T>(bytes: Uint8Array, decode: (bytes: Uint8Array) => T): T | Error {
  try {
    return decode(bytes)
  } catch (error) {
    if (error instanceof CodecError) return error
    throw error
  }
}

/** What a picture should show of a frame of the client: its commands about locks. */
function clientLabel(messages: readonly ClientMessage[]): Label | undefined {
  const words = messages.flatMap((message) => {
    if (message.kind !== 'command') return []
    const { command } = message
    if (command.kind === 'acquire') return [`acquire ${command.locks.map((lock) => lock.name).join(', ')}`]
    if (command.kind === 'renew' || command.kind === 'release' || command.kind === 'steal') return [command.kind]
    return []
  })
  return words.length === 0 ? undefined : { text: words.join(', ') }
}

/** And of the member: grants, with their token, and ends. */
function serverLabel(messages: readonly ServerMessage[]): Label | undefined {
  for (const message of messages) {
    const grant = grantOf(message)
    if (grant === undefined) continue
    const token = String(grant.locks[0]?.token ?? '')
    return { text: `granted ${token}`, token }
  }
  return undefined
}

/** In an answer or in a push. */
function grantOf(message: ServerMessage): Grant | undefined {
  if (message.kind === 'push') return message.push.change?.kind === 'granted' ? message.push.change.grant : undefined
  return message.kind === 'result' && message.result.kind === 'granted' ? message.result.grant : undefined
}
