import type { Channel, ChannelEvents, Connector } from '@leasehold/client'
import type { ClientMessage, ServerMessage } from '@leasehold/core'

/**
 * Messages of one client that get lost between its program and its connection. `message`: the kind of a command
 * (`renew`), or of an answer (`granted`). `pattern`: for each of them in turn 1 = lost, over and over; `times`: that many,
 * then no more. `breaks`: the connection breaks at it, as it does when a member dies before its answer leaves.
 */
export interface Drop {
  readonly message: string
  readonly pattern?: string
  readonly times?: number
  readonly breaks?: boolean
}

/** A connector that loses what the drops say. */
export class DroppingConnector implements Connector {
  readonly #counts = new Map<Drop, number>()

  readonly #inner: Connector
  readonly #drops: readonly Drop[]

  constructor(inner: Connector, drops: readonly Drop[]) {
    this.#inner = inner
    this.#drops = drops
  }

  connect(url: string, events: ChannelEvents): Channel {
    let broken = false
    const breaks = (): void => {
      if (broken) return
      broken = true
      channel.close()
      events.closed(new Error('the connection broke'))
    }
    const channel = this.#inner.connect(url, {
      opened: () => events.opened(),
      received: (messages) => {
        const left = this.#left(messages, answerOf, breaks)
        if (!broken && left.length > 0) events.received(left)
      },
      closed: (error) => {
        if (!broken) events.closed(error)
      },
    })
    return {
      get buffered() {
        return channel.buffered
      },
      send: (messages) => {
        const left = this.#left(messages, commandOf, () => {})
        if (left.length > 0) channel.send(left)
      },
      close: () => channel.close(),
    }
  }

  #left<T>(messages: readonly T[], kindOf: (message: T) => string, breaks: () => void): T[] {
    return messages.filter((message) => {
      const drop = this.#drops.find((one) => one.message === kindOf(message))
      if (!drop || !this.#isLost(drop)) return true
      if (drop.breaks) breaks()
      return false
    })
  }

  #isLost(drop: Drop): boolean {
    const n = this.#counts.get(drop) ?? 0
    this.#counts.set(drop, n + 1)
    if (drop.times !== undefined) return n < drop.times
    const { pattern = '1' } = drop
    return pattern[n % pattern.length] === '1'
  }
}

function commandOf(message: ClientMessage): string {
  return message.kind === 'command' ? message.command.kind : message.kind
}

function answerOf(message: ServerMessage): string {
  return message.kind === 'result' ? message.result.kind : message.kind
}
