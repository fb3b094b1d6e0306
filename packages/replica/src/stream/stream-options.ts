import {
  type ClientMessage,
  type Hello,
  type Hex128,
  type Index,
  type LockState,
  type MayRead,
  type Query,
  type QueryResult,
  queryState,
  type Refused,
  type RegisterView,
  registerOf,
  type ServerMessage,
  type SessionId,
  sessionOf,
} from '@leasehold/core'
import type { Member } from '../member.js'

/** The queries of streams on the lock state, between two entries. */
export interface StreamViews<State> {
  query(state: State, query: Query, index: Index): QueryResult
  register(state: State, key: string): RegisterView | undefined
  /** Returns the secret of a live session. */
  sessionSecret(state: State, session: SessionId): Hex128 | undefined
}

export interface StreamHubOptions<State> {
  readonly member: Member<State>
  readonly views: StreamViews<State>
  /** Whether sessions opened here belong to the service's own process and end with it. Default false. */
  readonly local?: boolean
  /** URLs of all members that accept clients, for `welcome`. */
  readonly urls?: () => readonly string[]
  readonly limits?: Partial<StreamLimits>
}

export interface StreamLimits {
  /** Most unanswered commands, queries and reads of one stream. */
  readonly open: number
  /** Most sessions bound to one stream. */
  readonly sessions: number
  /** Most watches of one stream. */
  readonly watches: number
  /** Most bytes of answers in one turn plus unsent bytes, before further reads are deferred. */
  readonly unsentBytes: number
}

export const STREAM_LIMITS: StreamLimits = { open: 16_384, sessions: 10_000, watches: 256, unsentBytes: 1024 * 1024 }

/** The client's end of a stream, with its permissions. */
export interface StreamPeer {
  /** Sends messages to the client, in order, those of one burst together. The caller does not keep the array. */
  emit(messages: readonly ServerMessage[]): void
  /**
   * Returns the emitted bytes that are not yet sent. A transport with a backlog calls {@link ServiceStream.sent} in a later
   * turn after each `emit` that is large, or that happens while {@link ServiceStream.awaitsSent} or while others are unsent.
   * Default: everything is sent immediately.
   */
  backlog?(): number
  /** Ends the connection after everything that was emitted has been sent. */
  end(why: string): void
  /** Checks the credentials of a connection. A refusal ends it. Default: all connections are accepted. */
  authenticate?(hello: Hello): Refused | undefined
  /** Authorizes every message after `hello`. Default: everything is allowed. */
  authorize?(message: Exclude<ClientMessage, Hello>): Refused | undefined
  /** Returns a refusal that ends an existing watch of this prefix. Default: watches continue. */
  watchEnds?(prefix: string): Refused | undefined
  /** Whether a name may be shown next to a requested one of the same hold or wait. Default: all names may. */
  readonly mayRead?: MayRead
}

export function refusal(code: Refused['code'], message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}

/** The queries of streams on a {@link LockState}. */
export const lockViews: StreamViews<LockState> = {
  query: queryState,
  register: registerOf,
  sessionSecret: (state, session) => sessionOf(state, session)?.secret,
}
