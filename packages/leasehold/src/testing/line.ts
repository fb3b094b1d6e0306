import type { Channel, ChannelEvents, Connector } from '@leasehold/client'
import {
  type ClientMessage,
  decodeClientMessages,
  decodeServerMessages,
  encodeClientMessages,
  encodeServerMessages,
  type LockState,
  type ServerMessage,
} from '@leasehold/core'
import type { ServiceStream, StreamHub } from '@leasehold/replica'
import { soon } from './test-clock.js'

/** Bound on frames that wait while a client is paused. Further ones are dropped. */
const PARKED_MAX = 100_000

/** The connection between one client and the service, through the real codec, with faults that a test switches on. */
export class Line implements Connector {
  /** Drops renewals on their way to the service. Everything else arrives. */
  dropsRenewals = false
  /** Delivers every reply twice. */
  repeatsReplies = false
  /** Number of replies to lose, each with its connection, before the client sees them. */
  repliesToLose = 0
  /** Drops all frames, and fails new connections. */
  isDown = false
  readonly #hub: StreamHub<LockState>
  readonly #cuts = new Set<(why: string) => void>()
  #parked: (() => void)[] | undefined

  constructor(hub: StreamHub<LockState>) {
    this.#hub = hub
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#cuts.size
  }

  /** Breaks the connection. The client reconnects. */
  cut(why = 'the test has cut the connection'): void {
    for (const cut of [...this.#cuts]) cut(why)
  }

  /** Queues frames in both directions until `resume`. */
  pause(): void {
    this.#parked ??= []
  }

  resume(): void {
    const parked = this.#parked ?? []
    this.#parked = undefined
    for (const deliver of parked) deliver()
  }

  connect(_url: string, events: ChannelEvents): Channel {
    let isClosed = false
    let stream: ServiceStream<LockState> | undefined
    const cut = (why: string) => {
      if (isClosed) return
      isClosed = true
      this.#cuts.delete(cut)
      stream?.close()
      soon(() => events.closed(new Error(why)))
    }
    const toClient = (message: ServerMessage) => {
      if (isClosed) return
      if (message.kind === 'result' && this.repliesToLose > 0) {
        this.repliesToLose--
        return cut('the test has lost a reply with its connection')
      }
      events.received([message])
      if (this.repeatsReplies && message.kind === 'result' && !isClosed) events.received([message])
    }
    const emit = (messages: readonly ServerMessage[]) => {
      const frame = decodeServerMessages(encodeServerMessages(messages))
      this.#soon(() => frame.forEach(toClient))
    }
    this.#soon(() => {
      if (isClosed) return
      if (this.isDown) return cut('the test has made the service unreachable')
      this.#cuts.add(cut)
      stream = this.#hub.open({ emit, end: cut })
      events.opened()
    })
    return {
      buffered: 0,
      send: (messages) => {
        const frame = decodeClientMessages(encodeClientMessages(messages)).filter((message) => this.#passes(message))
        this.#soon(() => {
          if (!isClosed && frame.length > 0) stream?.receive(frame)
        })
      },
      close: () => {
        isClosed = true
        this.#cuts.delete(cut)
        soon(() => stream?.close())
      },
    }
  }

  #passes(message: ClientMessage): boolean {
    return !(this.dropsRenewals && message.kind === 'command' && message.command.kind === 'renew')
  }

  #soon(deliver: () => void): void {
    const run = () => {
      if (!this.isDown || this.#cuts.size === 0) deliver()
    }
    soon(() => {
      if (!this.#parked) return run()
      if (this.#parked.length < PARKED_MAX) this.#parked.push(run)
    })
  }
}
