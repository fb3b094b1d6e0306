/** Limits of one client; undefined: no limit. */
export interface ClientLimits {
  /** Requests per second, without renewals and releases; bursts of twice as many. */
  readonly requestsPerSecond?: number | undefined
  /** Renewals per second: a limit of their own, so that other requests never cost a client its holds. */
  readonly renewalsPerSecond?: number | undefined
  /** Open sessions. */
  readonly sessions?: number | undefined
  /** Waiting acquires. */
  readonly waiters?: number | undefined
}
