import type { Cursor, EndReason, Event } from '@leasehold/core'
import type { SessionEndReason } from '../end-reasons.js'
import type { AcquireOptions, Engine, EngineSession, EngineStatus, OpenSessionOptions } from '../engine.js'

/** A message channel to another thread. Messages are structured clones and arrive in order. */
export interface Port {
  post(message: unknown): void
  /** Set once, before anything is posted. */
  onMessage: (message: never) => void
}

/** The near end of a {@link Port}, with the thread behind it. */
export interface OwnedPort extends Port {
  /** The other side is gone. */
  onGone: (error: Error) => void
  /** Whether the process must stay alive for answers of the other side. */
  keepAlive(wanted: boolean): void
  close(): Promise<void>
}

export interface WatchedEvent {
  readonly cursor: Cursor
  readonly event: Event
}

export interface OpenedSession {
  readonly id: bigint
  readonly ttlMs: number
  /** The memory of a `SharedLease`. */
  readonly lease: SharedArrayBuffer
}

/** What the host does for its engine. Each call is answered. */
export interface EngineCalls {
  connect(timeoutMs: number): Promise<void>
  /** `number` names the session between the two threads. */
  openSession(options: OpenSessionOptions & { readonly number: number }): Promise<OpenedSession>
  query: Engine['query']
  steal: Engine['steal']
  endSession: Engine['endSession']
  getRegister: Engine['getRegister']
  /** Starts a watch. Resolves with its id, for `watchNext` and the notice `watchStop`. */
  watchStart(options: { readonly prefix: string; readonly from?: Cursor }): Promise<number>
  watchNext(watch: number): Promise<IteratorResult<WatchedEvent> | undefined>
  close(): Promise<void>
}

/** What the host does for one session. Each call is answered. */
export interface SessionCalls {
  renew: EngineSession['renew']
  /** `abortable`: the caller may abort this call. */
  acquire(options: Omit<AcquireOptions, 'signal'>, abortable: boolean): ReturnType<EngineSession['acquire']>
  adopt: EngineSession['adopt']
  release: EngineSession['release']
  put: EngineSession['put']
  delete: EngineSession['delete']
  close: EngineSession['close']
}

/** What the host does for one session without an answer. */
export interface SessionNotices {
  limit(limitMs: number): void
  stopRenewing(): void
  cancelAcquires(why: string): void
  abandon(): void
}

export type EngineMethod = keyof EngineCalls
export type SessionMethod = keyof SessionCalls
export type SessionNotice = keyof SessionNotices

/** `Kind` messages for each method of `Calls`, with the arguments of that method. */
type Message<Kind extends string, Calls, Extra> = {
  [Method in keyof Calls]: Calls[Method] extends (...args: infer Args) => unknown
    ? { readonly kind: Kind; readonly method: Method; readonly args: Args } & Readonly<Extra>
    : never
}[keyof Calls]

export type EngineCallMessage = Message<'engineCall', EngineCalls, { id: number }>
export type SessionCallMessage = Message<'sessionCall', SessionCalls, { id: number; session: number }>
export type SessionNoticeMessage = Message<'sessionNotice', SessionNotices, { session: number }>

export type ToHost =
  | EngineCallMessage
  | SessionCallMessage
  | SessionNoticeMessage
  /** Ends the waiting of a call. */
  | { readonly kind: 'abort'; readonly id: number }
  | { readonly kind: 'watchStop'; readonly watch: number }

export type FromHost =
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: EncodedError }
  | { readonly kind: 'status'; readonly status: EncodedStatus }
  | {
      readonly kind: 'holdEnded'
      readonly session: number
      readonly hold: bigint
      readonly reason: EndReason
      readonly text: string
    }
  | { readonly kind: 'sessionEnded'; readonly session: number; readonly reason: SessionEndReason }

/** An error as data: structured clones lose the class. */
export interface EncodedError {
  readonly code: string | undefined
  readonly message: string
  readonly hint: string | undefined
  readonly reason: string | undefined
  readonly version: bigint | undefined
  readonly cause: string | undefined
}

export interface EncodedStatus {
  readonly state: EngineStatus['state']
  readonly attempt?: number
  readonly lastError?: EncodedError
  readonly url?: string
  readonly epoch?: number
}
