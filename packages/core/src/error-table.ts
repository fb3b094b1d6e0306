import { ERROR_CLASSES, type ErrorCode, isRetryable } from './errors.js'

/** What a border makes of an error. */
export interface ErrorRow {
  readonly class: string
  readonly http: number
  readonly exit: number
  readonly retryable: boolean
}

/**
 * The error table: one row per code, with what each border makes of it.
 * `docs/errors.md` is generated from it, and the HTTP status and the exit code are read from it, never written twice.
 */
export const ERRORS = {
  busy: row('busy', 409, 75),
  timeout: row('timeout', 408, 75),
  aborted: row('aborted', 499, 130),
  lost: row('lost', 410, 76),
  'session-ended': row('session-ended', 410, 76),
  'not-holder': row('not-holder', 409, 76),
  'stale-token': row('stale-token', 412, 76),
  'version-conflict': row('version-conflict', 412, 1),
  mismatch: row('mismatch', 400, 64),
  invalid: row('invalid', 400, 64),
  limit: row('limit', 429, 75),
  unauthenticated: row('unauthenticated', 401, 77),
  forbidden: row('forbidden', 403, 77),
  unreachable: row('unreachable', 503, 69),
  'no-quorum': row('no-quorum', 503, 69),
  'unknown-outcome': row('unknown-outcome', 504, 69),
  'expired-request': row('expired-request', 410, 1),
  gap: row('gap', 410, 1),
  'epoch-changed': row('epoch-changed', 410, 1),
  storage: row('storage', 507, 74),
} as const satisfies Record<ErrorCode, ErrorRow>

function row(code: ErrorCode, http: number, exit: number): ErrorRow {
  return { class: ERROR_CLASSES[code].errorClass, http, exit, retryable: isRetryable(code) }
}
