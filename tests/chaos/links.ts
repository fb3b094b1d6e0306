import { connect, createServer, type Server, type Socket } from 'node:net'
import type { LinkMode } from './plan.js'

/** A connection between members begins with the length (4 bytes), the kind and the sender's number. */
const KIND_AT = 4
const KIND_SENDER = 3
const NODE_AT = 5
const NODE_BYTES = 8
const SLOW_MS = 150

type State = LinkMode | 'open'

interface Connection {
  readonly inner: Socket
  readonly outer: Socket
  /** Node number of the sender; undefined for questions, which do not say it. */
  from: string | undefined
  known: boolean
  /** What arrived while nothing may pass. */
  held: Buffer[]
  swallowed: boolean
  /** Batches that a slow link has not delivered yet. */
  late: number
}

/**
 * The network between the members: one listening port per member, which the others are told. Each connection carries frames
 * one way, from the member that made it, so that each directed link can be cut, clogged (everything arrives late and in order),
 * swallowed (what was sent is gone) or slowed down by itself.
 */
export class Links {
  readonly #doors = new Map<string, { readonly server: Server; readonly port: number }>()
  readonly #connections = new Map<string, Set<Connection>>()
  readonly #states = new Map<string, State>()
  readonly #nameOf: (node: number) => string | undefined

  /** @param nameOf the member with a node number; undefined: none any more */
  constructor(nameOf: (node: number) => string | undefined) {
    this.#nameOf = nameOf
  }

  /** Opens the door to a member that listens on `targetPort`; resolves with the port that the others are told. */
  async open(name: string, targetPort: number): Promise<number> {
    const server = createServer({ noDelay: true }, (inner) => this.#accept(name, targetPort, inner))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    const { port } = server.address() as { port: number }
    this.#doors.set(name, { server, port })
    this.#connections.set(name, new Set())
    return port
  }

  set(from: string, to: string, state: State): void {
    this.#states.set(key(from, to), state)
    for (const connection of this.#connections.get(to) ?? []) {
      if (connection.from === from) this.#changed(connection, state)
    }
  }

  /** All links are open again. */
  healAll(): void {
    for (const [link, state] of [...this.#states]) {
      if (state === 'open') continue
      const [from, to] = link.split('>') as [string, string]
      this.set(from, to, 'open')
    }
  }

  close(): void {
    for (const { server } of this.#doors.values()) server.close()
    for (const connections of this.#connections.values()) {
      for (const { inner, outer } of connections) {
        inner.destroy()
        outer.destroy()
      }
    }
  }

  #accept(to: string, targetPort: number, inner: Socket): void {
    const outer = connect({ host: '127.0.0.1', port: targetPort, noDelay: true })
    const connection: Connection = { inner, outer, from: undefined, known: false, held: [], swallowed: false, late: 0 }
    const connections = this.#connections.get(to) as Set<Connection>
    connections.add(connection)
    const end = (): void => {
      connections.delete(connection)
      inner.destroy()
      outer.destroy()
    }
    for (const socket of [inner, outer]) {
      socket.on('error', end)
      socket.on('close', end)
    }
    outer.on('data', (chunk: Buffer) => inner.write(chunk))
    outer.on('end', () => inner.end())
    inner.on('end', () => outer.end())
    inner.on('data', (chunk: Buffer) => {
      connection.held.push(chunk)
      if (!connection.known && !this.#identify(connection)) return
      this.#changed(connection, this.#stateOf(connection, to))
    })
  }

  /** Reads the sender from the first frame. */
  #identify(connection: Connection): boolean {
    const bytes = Buffer.concat(connection.held)
    if (bytes.length < NODE_AT + NODE_BYTES) {
      // A question is short.
      if (bytes.length <= KIND_AT || bytes[KIND_AT] === KIND_SENDER) return false
    } else if (bytes[KIND_AT] === KIND_SENDER) connection.from = this.#nameOf(Number(bytes.readBigUInt64LE(NODE_AT)))
    connection.known = true
    return true
  }

  /** Questions of members that begin pass unless every link to this member is disturbed. */
  #stateOf({ from }: Connection, to: string): State {
    if (from !== undefined) return this.#states.get(key(from, to)) ?? 'open'
    const others = [...this.#doors.keys()].filter((name) => name !== to)
    return others.every((other) => (this.#states.get(key(other, to)) ?? 'open') !== 'open') ? 'cut' : 'open'
  }

  #changed(connection: Connection, state: State): void {
    const { inner } = connection
    switch (state) {
      case 'cut':
        inner.destroy()
        return
      case 'clog':
        inner.pause()
        return
      case 'forget':
        connection.swallowed = connection.swallowed || connection.held.length > 0
        connection.held = []
        return
      case 'slow': {
        const late = connection.held
        connection.held = []
        connection.late++
        setTimeout(() => {
          connection.late--
          this.#pass(connection, late)
        }, SLOW_MS)
        return
      }
      case 'open':
        // Frames stay whole, and nothing may overtake what is still on its way.
        if (connection.swallowed || connection.late > 0) {
          inner.destroy()
          return
        }
        this.#pass(connection, connection.held)
        connection.held = []
        if (inner.isPaused()) inner.resume()
        return
    }
  }

  #pass({ outer }: Connection, chunks: readonly Buffer[]): void {
    if (outer.destroyed) return
    for (const chunk of chunks) outer.write(chunk)
  }
}

function key(from: string, to: string): string {
  return `${from}>${to}`
}
