import type { ClientMessage, ServerMessage } from '@leasehold/core'

/** One connection to one member. */
export interface Channel {
  /** Sends messages as one frame (or as few as its size allows). Never throws; a broken channel reports `closed`. */
  send(messages: readonly ClientMessage[]): void
  /** Bytes that are queued and not sent yet. */
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

/** Opens connections: by WebSocket, or by callbacks within a process. */
export interface Connector {
  connect(url: string, events: ChannelEvents): Channel
}
