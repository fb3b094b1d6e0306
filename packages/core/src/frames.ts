import type { Index, SessionId } from './brand.js'
import type {
  Command,
  Cursor,
  Event,
  Hex128,
  Push,
  Query,
  QueryResult,
  Refused,
  RegisterView,
  Result,
} from './operations.js'

/**
 * Version of the stream between client and server. A binary WebSocket message is one frame, which contains any number of
 * messages back to back. The client chooses `correlation` (1 … 2^32 − 1), and the answer repeats it.
 */
export const STREAM_VERSION = 1

/** First message of a connection. */
export interface Hello {
  readonly kind: 'hello'
  readonly version: number
  readonly apiKey: string
  readonly client: string
  /** The highest epoch that the client has seen; 0: none. */
  readonly epoch: number
}

/** Binds a session that was opened on another connection to this one. Answered by `attached` or a refusal. */
export interface Attach {
  readonly kind: 'attach'
  readonly correlation: number
  readonly session: SessionId
  readonly secret: Hex128
}

export interface CommandMessage {
  readonly kind: 'command'
  readonly correlation: number
  readonly command: Command
}

export interface QueryMessage {
  readonly kind: 'query'
  readonly correlation: number
  readonly query: Query
  readonly stale: boolean
}

export interface GetMessage {
  readonly kind: 'get'
  readonly correlation: number
  readonly key: string
  readonly stale: boolean
}

export interface WatchMessage {
  readonly kind: 'watch'
  readonly correlation: number
  readonly prefix: string
  readonly from?: Cursor
}

export interface UnwatchMessage {
  readonly kind: 'unwatch'
  readonly correlation: number
}

export interface PingMessage {
  readonly kind: 'ping'
  readonly correlation: number
}

export type ClientMessage =
  | Hello
  | Attach
  | CommandMessage
  | QueryMessage
  | GetMessage
  | WatchMessage
  | UnwatchMessage
  | PingMessage

export interface Welcome {
  readonly kind: 'welcome'
  readonly version: number
  readonly cluster: string
  readonly epoch: number
  /** This member's name. */
  readonly member: string
  /** The leader's URL for clients; '' if unknown or if this member leads. */
  readonly leaderUrl: string
  /** The client URLs of all members that have one. */
  readonly urls: readonly string[]
}

export interface ResultMessage {
  readonly kind: 'result'
  readonly correlation: number
  readonly result: Result
}

export interface AttachedMessage {
  readonly kind: 'attached'
  readonly correlation: number
}

export interface QueryAnswer {
  readonly kind: 'queryAnswer'
  readonly correlation: number
  readonly answer: QueryResult
}

export interface GetAnswer {
  readonly kind: 'getAnswer'
  readonly correlation: number
  readonly register: RegisterView | undefined
}

export interface PushMessage {
  readonly kind: 'push'
  readonly push: Push
}

/** Events of a watch: those of one entry that it matches, in order, each with its ordinal in that entry. */
export interface EventsMessage {
  readonly kind: 'events'
  readonly correlation: number
  readonly index: Index
  readonly items: readonly { readonly ordinal: number; readonly event: Event }[]
}

export interface PongMessage {
  readonly kind: 'pong'
  readonly correlation: number
}

/** The answer to a message that failed before it became a command. With correlation 0 it concerns the connection. */
export interface ErrorMessage {
  readonly kind: 'error'
  readonly correlation: number
  readonly refused: Refused
  /** The URL to use instead; '' if unknown. */
  readonly leaderUrl: string
}

export type ServerMessage =
  | Welcome
  | ResultMessage
  | AttachedMessage
  | QueryAnswer
  | GetAnswer
  | PushMessage
  | EventsMessage
  | PongMessage
  | ErrorMessage
