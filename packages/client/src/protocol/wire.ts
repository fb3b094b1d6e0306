import type { Command, Hex128, LeaseholdError, Result, SessionId } from '@leasehold/core'

/** The answer to a command on the present connection. It never arrives when the connection breaks before it. */
export interface Awaiting {
  answered(result: Result): void
}

/** By what the service knows a session. */
export interface SessionIdentity {
  readonly session: SessionId
  readonly secret: Hex128
  readonly ttlMs: number
  readonly epoch: number
}

/** What a session needs from the connection below it. */
export interface Wire {
  readonly connected: boolean
  /** Why the last attempt to connect failed, if known. */
  readonly lastError: LeaseholdError | undefined
  /** Starts to connect unless connected or connecting. */
  ensureConnected(): void
  /** Sends on the present connection. */
  command(command: Command, awaiting: Awaiting): void
  /**
   * Sends a repeatable command without a session, again on every new connection until it is answered. `sends` counts the
   * sendings.
   */
  call(what: string, timeoutMs: number, command: Command, sends?: { count: number }): Promise<Result>
  forget(session: { readonly identity: SessionIdentity }): void
  /** Milliseconds of the monotonic clock. */
  now(): number
  /** Runs `callback` after `delayMs`. `keepAlive`: a caller waits for it. */
  after(delayMs: number, callback: () => void, keepAlive?: boolean): () => void
  /** An UnavailableError with what is known about the connection. */
  unavailable(message: string): LeaseholdError
  /** Pings the service because an answer is overdue, and drops the connection if nothing arrives within `patienceMs`. */
  probe(error: LeaseholdError, patienceMs: number): void
}
