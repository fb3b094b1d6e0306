import { ERRORS, HoldLostError, LeaseholdError, VersionConflictError } from '@leasehold/core'

/** The body of an error response: RFC 9457, with the fields of the error table. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly hint?: string
  readonly retryable: boolean
  readonly [extra: string]: unknown
}

const TITLES: Record<keyof typeof ERRORS, string> = {
  busy: 'The lock is taken',
  timeout: 'The lock was not granted in time',
  aborted: 'The wait was aborted',
  lost: 'The hold is lost',
  'session-ended': 'The session has ended',
  'not-holder': 'There is no such hold',
  'stale-token': 'The token is stale',
  'version-conflict': 'The register has another version',
  mismatch: 'The request contradicts what exists',
  invalid: 'The request is wrong',
  limit: 'A limit is reached',
  unauthenticated: 'Credentials are missing or wrong',
  forbidden: 'This is not allowed',
  unreachable: 'The service is not available',
  'no-quorum': 'This member cannot decide',
  'unknown-outcome': 'The outcome is not known',
  'expired-request': 'The answer is no longer stored',
  gap: 'Events were missed',
  'epoch-changed': 'The service was restored',
  storage: 'The disk is full or broken',
}

/** An error that has an HTTP status of its own: unknown route, method, media type, size. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly hint?: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(detail)
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof HttpError) {
    return problem(error.status, 'invalid', error.title, error.message, error.hint, false)
  }
  if (error instanceof LeaseholdError) {
    const { code, message, hint, retryable } = error
    const body = problem(ERRORS[code].http, code, TITLES[code], message, hint, retryable)
    if (error instanceof HoldLostError) return { ...body, reason: error.reason }
    if (error instanceof VersionConflictError) return { ...body, version: String(error.version) }
    return body
  }
  return problem(
    500,
    'unknown-outcome',
    'The server failed',
    'the server failed while it processed this request',
    undefined,
    false,
  )
}

/** Whether the error is an expected one; others are bugs and are logged with their stack. */
export function isExpected(error: unknown): boolean {
  return error instanceof HttpError || error instanceof LeaseholdError
}

function problem(
  status: number,
  code: string,
  title: string,
  detail: string,
  hint: string | undefined,
  retryable: boolean,
): Problem {
  const type = `urn:leasehold:error:${code}`
  return { type, title, status, code, detail, ...(hint === undefined ? {} : { hint }), retryable }
}

/** The full response text for a connection without an HTTP response object: a malformed request or rejected upgrade. */
export function rawResponse(error: unknown): string {
  const problem = problemOf(error)
  const body = `${JSON.stringify(problem)}\n`
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.title}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
