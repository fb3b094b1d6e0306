import type { Channel, ChannelEvents, Connector } from '@leasehold/client'
import { type ClientMessage, UnavailableError } from '@leasehold/core'
import type { StreamHub } from '@leasehold/replica'

/** Connections to a member of this process: messages are passed on as they are, one turn later. */
export class LocalConnector<State> implements Connector {
  readonly #hub: StreamHub<State>

  constructor(hub: StreamHub<State>) {
    this.#hub = hub
  }

  connect(_url: string, events: ChannelEvents): Channel {
    let over = false
    const soon = (action: () => void) => queueMicrotask(() => over || action())
    const stream = this.#hub.open({
      emit: (messages) => soon(() => events.received(messages)),
      end: (why) =>
        soon(() => {
          over = true
          events.closed(new UnavailableError(why))
        }),
    })
    soon(() => events.opened())
    return {
      buffered: 0,
      send: (messages: readonly ClientMessage[]) => soon(() => stream.receive(messages)),
      close() {
        // Earlier messages still arrive; answers are dropped.
        over = true
        queueMicrotask(() => stream.close())
      },
    }
  }
}
