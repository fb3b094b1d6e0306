import { InvalidError, LeaseholdError } from '@leasehold/core'

/** The header that passes a caller's fencing tokens to another service: `Fencing-Token: billing%2Finvoice-42=33`. */
export const FENCING_HEADER = 'Fencing-Token'

/** The caller sent no fencing token, or none for the lock of the route. HTTP status 428. */
export class FencingRequiredError extends InvalidError {
  static override readonly errorClass: string = 'FencingRequiredError'
  constructor(lock?: string) {
    const name = lock === undefined ? 'name' : encodeURIComponent(lock)
    const which = lock === undefined ? '' : ` with a token for the lock ${JSON.stringify(lock)}`
    super(`this resource needs the header ${FENCING_HEADER}${which}`, {
      hint: `send ${FENCING_HEADER}: ${name}=33, with the token of your hold`,
    })
  }
}

/** A response in the format of RFC 9457. */
export interface Problem {
  readonly status: number
  readonly contentType: 'application/problem+json'
  readonly body: {
    readonly type: string
    readonly title: string
    readonly status: number
    readonly detail: string
    readonly code: string
    readonly [extra: string]: unknown
  }
}

/**
 * Returns the response for an error of a guarded handler: 428 without a token, 412 for a stale one, 400 for a malformed or
 * mismatched one, 503 if the store is unreachable (nothing was written), 504 if the outcome of the write is unknown.
 * Undefined for errors that no guard has thrown: rethrow those.
 */
export function problemOf(error: unknown): Problem | undefined {
  if (!(error instanceof LeaseholdError)) return undefined
  const { code } = error
  if (error instanceof FencingRequiredError)
    return problem(428, 'Precondition Required', 'fencing-token-required', error)
  if (code === 'stale-token') return problem(412, 'Precondition Failed', code, error)
  if (code === 'invalid' || code === 'mismatch') return problem(400, 'Bad Request', code, error)
  if (code === 'unreachable') return problem(503, 'Service Unavailable', code, error)
  if (code === 'unknown-outcome') return problem(504, 'Gateway Timeout', code, error)
  return undefined
}

function problem(status: number, title: string, code: string, error: LeaseholdError): Problem {
  const { message, hint, resource, token, mark } = error.toJSON()
  const extra = Object.entries({ hint, resource, token, mark }).filter(([, value]) => value !== undefined)
  const type = `https://leasehold.invalid/problems/${code}`
  const body = { type, title, status, detail: String(message), code, ...Object.fromEntries(extra) }
  return { status, contentType: 'application/problem+json', body }
}
