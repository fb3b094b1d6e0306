import type { Command, LeaseholdError, Result } from '@leasehold/core'
import type { Awaiting } from './deduplicated-request.js'
import type { ProtocolSession } from './protocol-session.js'

/** What a session needs from the connection under it. */
export interface Wire {
  readonly connected: boolean
  /** Why there is no connection, as far as is known. */
  readonly lastError: LeaseholdError | undefined
  /** Begins to connect unless that is under way. */
  ensureConnected(): void
  /** Sends on the present connection. */
  command(command: Command, awaiting: Awaiting): void
  /**
   * Sends a repeatable command without a session, on this connection and, without an answer, on the next ones. `sends`
   * counts how often.
   */
  call(what: string, timeoutMs: number, command: Command, sends?: { count: number }): Promise<Result>
  forget(session: ProtocolSession): void
  now(): number
  /** `keepAlive`: a caller waits for this. */
  after(delayMs: number, callback: () => void, keepAlive?: boolean): () => void
  /** An UnavailableError with what is known about the connection. */
  unavailable(message: string): LeaseholdError
  /** An answer is overdue: asks whether anybody is there, and gives the connection up if nothing is heard in `patienceMs`. */
  probe(error: LeaseholdError, patienceMs: number): void
}
