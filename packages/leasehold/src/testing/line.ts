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
import { soon } from './clock.js'

/** Frames that wait while a client is paused. */
const PARKED_MAX = 100_000

/** The way between one client and the service, through the real codec, with faults that a test switches on. */
export class Line implements Connector {
  /** Renewals vanish on their way to the service. Everything else arrives. */
  dropsRenewals = false
  /** Every answer arrives twice. */
  repeatsReplies = false
  /** Answers that vanish, with their connection, before the client sees them. */
  repliesToLose = 0
  /** Nobody answers: frames vanish, and new connections fail. */
  isDown = false
  readonly #hub: StreamHub<LockState>
  readonly #cuts = new Set<(why: string) => void>()
  #parked: (() => void)[] | undefined

  constructor(hub: StreamHub<LockState>) {
    this.#hub = hub
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#cuts.size
  }

  /** Breaks the connection. The client makes a new one. */
  cut(why = 'the test has cut the connection'): void {
    for (const cut of [...this.#cuts]) cut(why)
  }

  /** Frames in both directions wait for `resume`. */
  pause(): void {
    this.#parked ??= []
  }

  resume(): void {
    const parked = this.#parked ?? []
    this.#parked = undefined
    for (const deliver of parked) deliver()
  }

  connect(_url: string, events: ChannelEvents): Channel {
    let over = false
    let stream: ServiceStream<LockState> | undefined
    const cut = (why: string) => {
      if (over) return
      over = true
      this.#cuts.delete(cut)
      stream?.close()
      soon(() => events.closed(new Error(why)))
    }
    const toClient = (message: ServerMessage) => {
      if (over) return
      if (message.kind === 'result' && this.repliesToLose > 0) {
        this.repliesToLose--
        return cut('the test has lost an answer with its connection')
      }
      events.received([message])
      if (this.repeatsReplies && message.kind === 'result' && !over) events.received([message])
    }
    const emit = (messages: readonly ServerMessage[]) => {
      const frame = decodeServerMessages(encodeServerMessages(messages))
      this.#soon(() => frame.forEach(toClient))
    }
    this.#soon(() => {
      if (over) return
      if (this.isDown) return cut('nobody listens there: the test says so')
      this.#cuts.add(cut)
      stream = this.#hub.open({ emit, end: cut })
      events.opened()
    })
    return {
      buffered: 0,
      send: (messages) => {
        const frame = decodeClientMessages(encodeClientMessages(messages)).filter((message) => this.#passes(message))
        this.#soon(() => {
          if (!over && frame.length > 0) stream?.receive(frame)
        })
      },
      close: () => {
        over = true
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
