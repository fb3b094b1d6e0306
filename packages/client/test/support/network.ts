import {
  decodeClientMessages,
  decodeServerMessages,
  encodeClientMessages,
  encodeServerMessages,
  type LockState,
  type ServerMessage,
} from '@leasehold/core'
import type { ServiceStream, StreamHub } from '@leasehold/replica'
import type { Channel, ChannelEvents, Connector } from '../../src/index.js'

interface Open {
  cut(error: Error): void
  /** Looks open, and carries nothing any more: half-open. */
  dead: boolean
}

/**
 * Connections between clients and hubs of the same process, through the real codec. A test can cut them at any message,
 * refuse new ones, hold frames back, and count what went over.
 */
export class TestNetwork implements Connector {
  readonly hubs = new Map<string, StreamHub<LockState>>()
  readonly open = new Set<Open>()
  /** Unreachable URLs. */
  readonly down = new Set<string>()
  /** Frames vanish without a trace: a half-open connection. */
  blackHole = false
  /** Frames to the client wait until `flush`. */
  holdBack = false
  connects: string[] = []
  toServer = 0
  toClient = 0
  readonly received: ServerMessage[] = []
  /** Every connection is cut after this many messages, counted in both directions over all of them. */
  cutAfter = Number.POSITIVE_INFINITY
  /** Every connection becomes half-open after this many messages. */
  loseAfter = Number.POSITIVE_INFINITY
  onLost: () => void = () => {}
  #held: (() => void)[] = []

  connect(url: string, events: ChannelEvents): Channel {
    this.connects.push(url)
    const hub = this.hubs.get(url)
    const network = this
    let over = false
    let stream: ServiceStream<LockState> | undefined
    const cut = (error: Error) => {
      if (over) return
      over = true
      this.open.delete(connection)
      stream?.close()
      queueMicrotask(() => events.closed(error))
    }
    const connection: Open = { cut, dead: false }
    const emit = (messages: readonly ServerMessage[]) => {
      if (over || connection.dead || this.blackHole) return
      const frame = decodeServerMessages(encodeServerMessages(messages))
      const deliver = () =>
        queueMicrotask(() => {
          for (const message of frame) {
            if (over || connection.dead) return
            this.toClient++
            this.received.push(message)
            events.received([message])
            if (this.#counted()) cut(new Error('cut by the test'))
          }
        })
      if (this.holdBack) this.#held.push(deliver)
      else deliver()
    }
    queueMicrotask(() => {
      if (over) return
      if (!hub || this.down.has(url)) return cut(new Error(`no listener at ${url}`))
      this.open.add(connection)
      stream = hub.open({ emit, end: (why) => cut(new Error(why)) })
      events.opened()
    })
    return {
      buffered: 0,
      send(messages) {
        if (over || connection.dead || network.blackHole) return
        const frame = decodeClientMessages(encodeClientMessages(messages))
        queueMicrotask(() => {
          for (const message of frame) {
            if (over || connection.dead) return
            network.toServer++
            stream?.receive([message])
            if (network.#counted()) cut(new Error('cut by the test'))
          }
        })
      },
      close() {
        over = true
        network.open.delete(connection)
        queueMicrotask(() => stream?.close())
      },
    }
  }

  cutAll(): void {
    for (const connection of [...this.open]) connection.cut(new Error('cut by the test'))
  }

  /** The present connections become half-open; new ones work. */
  freeze(): void {
    for (const connection of this.open) connection.dead = true
  }

  flush(): void {
    this.holdBack = false
    for (const deliver of this.#held.splice(0)) deliver()
  }

  #counted(): boolean {
    if (this.toServer + this.toClient >= this.loseAfter) {
      this.loseAfter = Number.POSITIVE_INFINITY
      this.freeze()
      this.onLost()
    }
    if (this.toServer + this.toClient < this.cutAfter) return false
    this.cutAfter = Number.POSITIVE_INFINITY
    return true
  }
}
