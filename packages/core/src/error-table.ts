/** What an error is at each border of the system. */
export interface ErrorRow {
  /** Name of the class that carries the code. */
  readonly class: string
  /** HTTP status. */
  readonly http: number
  /** Exit code of the command line. */
  readonly exit: number
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
  /** Number in binary messages and snapshots. Part of the format: never change or reuse one, only add. */
  readonly wire: number
}

/**
 * The error table: one row per code. Classes, HTTP status, exit codes, binary numbers and `docs/errors.md` are derived from
 * it and written nowhere else.
 */
export const ERRORS = {
  busy: { class: 'BusyError', http: 409, exit: 75, retryable: true, wire: 1 },
  timeout: { class: 'AcquireTimeoutError', http: 408, exit: 75, retryable: true, wire: 2 },
  aborted: { class: 'AbortedError', http: 499, exit: 130, retryable: false, wire: 3 },
  lost: { class: 'HoldLostError', http: 410, exit: 76, retryable: false, wire: 4 },
  'session-ended': { class: 'SessionEndedError', http: 410, exit: 76, retryable: false, wire: 5 },
  'not-holder': { class: 'NotHolderError', http: 409, exit: 76, retryable: false, wire: 6 },
  'stale-token': { class: 'StaleTokenError', http: 412, exit: 76, retryable: false, wire: 7 },
  'version-conflict': { class: 'VersionConflictError', http: 412, exit: 1, retryable: false, wire: 8 },
  mismatch: { class: 'InvalidError', http: 400, exit: 64, retryable: false, wire: 9 },
  invalid: { class: 'InvalidError', http: 400, exit: 64, retryable: false, wire: 10 },
  limit: { class: 'LimitError', http: 429, exit: 75, retryable: true, wire: 11 },
  unauthenticated: { class: 'AccessError', http: 401, exit: 77, retryable: false, wire: 12 },
  forbidden: { class: 'AccessError', http: 403, exit: 77, retryable: false, wire: 13 },
  unreachable: { class: 'UnavailableError', http: 503, exit: 69, retryable: true, wire: 14 },
  'no-quorum': { class: 'UnavailableError', http: 503, exit: 69, retryable: true, wire: 15 },
  'unknown-outcome': { class: 'UnknownOutcomeError', http: 504, exit: 69, retryable: false, wire: 16 },
  'expired-request': { class: 'ExpiredRequestError', http: 410, exit: 1, retryable: false, wire: 17 },
  gap: { class: 'WatchError', http: 410, exit: 1, retryable: false, wire: 18 },
  'epoch-changed': { class: 'EpochChangedError', http: 410, exit: 1, retryable: false, wire: 19 },
  storage: { class: 'StorageError', http: 507, exit: 74, retryable: false, wire: 20 },
} as const satisfies Record<string, ErrorRow>

/** What happened, in one word. */
export type ErrorCode = keyof typeof ERRORS

/** Whether `code`, which may come from another program, is in the table. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code)
}
