/** A two-way way of messages to another thread. Messages are structured clones and arrive in order. */
export interface Port {
  post(message: unknown): void
  /** Set once, before anything is posted. */
  onMessage: (message: never) => void
}

/** The near end of a {@link Port}, with the thread behind it. */
export interface OwnedPort extends Port {
  /** The other side is gone. */
  onGone: (error: Error) => void
  /** Whether this process should live on for what the other side will say. */
  keepAlive(wanted: boolean): void
  close(): Promise<void>
}

/** A question to the other thread; `session` is the number that its opening returned. */
export interface CallMessage {
  readonly kind: 'call'
  readonly id: number
  readonly method: string
  readonly session?: number
  readonly args: readonly unknown[]
}

export type ToHost =
  | CallMessage
  /** Ends the waiting of a call. */
  | { readonly kind: 'abort'; readonly id: number }
  /** Wants no answer. */
  | { readonly kind: 'tell'; readonly method: string; readonly session: number; readonly args: readonly unknown[] }

export type FromHost =
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: EncodedError }
  | { readonly kind: 'status'; readonly status: EncodedStatus }
  | {
      readonly kind: 'holdEnded'
      readonly session: number
      readonly hold: bigint
      readonly reason: string
      readonly text: string
    }
  | { readonly kind: 'sessionEnded'; readonly session: number; readonly reason: string }

/** An error as data: classes do not survive the way. */
export interface EncodedError {
  readonly code: string | undefined
  readonly message: string
  readonly hint: string | undefined
  readonly reason: string | undefined
  readonly version: bigint | undefined
  readonly cause: string | undefined
}

export interface EncodedStatus {
  readonly state: 'idle' | 'connecting' | 'connected' | 'closed'
  readonly attempt?: number
  readonly lastError?: EncodedError
  readonly url?: string
  readonly epoch?: number
}
