import type { ClientMessage, ServerMessage } from '@leasehold/core'

/** One connection to one member. */
export interface Channel {
  /** Sends messages as one frame (or as few as its size allows). Never throws; a broken channel reports `closed`. */
  send(messages: readonly ClientMessage[]): void
  /** Bytes that were handed over and have not left yet. */
  readonly buffered: number
  /** Closes without a further event. */
  close(): void
}

/** Events of a channel, never inside the call that made it: any number of `received` after `opened`, then one `closed`. */
export interface ChannelEvents {
  opened(): void
  received(messages: readonly ServerMessage[]): void
  closed(error: Error): void
}

/** Makes connections. A WebSocket, or a pair of callbacks in one process. */
export interface Connector {
  connect(url: string, events: ChannelEvents): Channel
}
