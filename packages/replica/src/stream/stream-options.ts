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

/** What streams read from the lock state, between two entries. */
export interface StreamViews<State> {
  query(state: State, query: Query, index: Index): QueryResult
  register(state: State, key: string): RegisterView | undefined
  /** The secret of a living session. */
  sessionSecret(state: State, session: SessionId): Hex128 | undefined
}

export interface StreamHubOptions<State> {
  readonly member: Member<State>
  readonly views: StreamViews<State>
  /** Sessions that are opened here live in the service's own process, and end with it. Default false. */
  readonly local?: boolean
  /** URLs of all members that take clients, for `welcome`. */
  readonly urls?: () => readonly string[]
  readonly limits?: Partial<StreamLimits>
}

export interface StreamLimits {
  /** Commands, queries and reads of one stream without an answer. */
  readonly open: number
  /** Sessions bound to one stream. */
  readonly sessions: number
  /** Watches of one stream. */
  readonly watches: number
  /** Bytes of answers in one turn, and that wait for the client, before its further reads are put off. */
  readonly unsentBytes: number
}

export const STREAM_LIMITS: StreamLimits = { open: 16_384, sessions: 10_000, watches: 256, unsentBytes: 1024 * 1024 }

/** The other end of a stream, and who may do what on it. */
export interface StreamPeer {
  /** Messages for the client, in order: those of one burst together. Not kept by the caller afterwards. */
  emit(messages: readonly ServerMessage[]): void
  /**
   * Bytes of what was emitted that have not left yet. Whoever has this calls {@link ServiceStream.sent} in a later turn
   * after each `emit` that is large, or comes while {@link ServiceStream.awaitsSent} or while others have not left.
   * Default: everything leaves at once.
   */
  backlog?(): number
  /** The stream is of no use any more; what was emitted before should still leave. */
  end(why: string): void
  /** Looks at the credentials of a connection. A refusal ends it. Default: everybody is welcome. */
  authenticate?(hello: Hello): Refused | undefined
  /** Decides over every message after `hello`. Default: everything is allowed. */
  authorize?(message: Exclude<ClientMessage, Hello>): Refused | undefined
  /** Why a watch of this prefix, which was allowed, may see nothing more; it ends with that. Default: it goes on. */
  watchEnds?(prefix: string): Refused | undefined
  /** Whether this name may be told beside one that was asked for: both are of one hold or wait. Default: all are. */
  readonly mayRead?: MayRead
}

export function refusal(code: Refused['code'], message: string, hint?: string): Refused {
  return hint === undefined ? { kind: 'refused', code, message } : { kind: 'refused', code, message, hint }
}

/** How streams read the lock state. */
export const lockViews: StreamViews<LockState> = {
  query: queryState,
  register: registerOf,
  sessionSecret: (state, session) => sessionOf(state, session)?.secret,
}
