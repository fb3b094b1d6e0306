import { ERRORS, LeaseholdError } from '@leasehold/core'

/** The properties of an error that web frameworks read. */
interface HttpFace {
  /** Read by Fastify. With `status` and `expose`, as in the package http-errors, also by Express and Nest. */
  readonly statusCode: number
  readonly status: number
  /** Whether the message may be sent to the client. */
  readonly expose: boolean
  /** Read by Hono. */
  getResponse(): Response
}

/**
 * Waits for `work`, and adds the HTTP status of the error table to a `LeaseholdError`: a lock that is held elsewhere is an
 * ordinary response (409, 408), not a failure of this program (500).
 */
export async function withStatus<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof LeaseholdError) addHttpFace(error)
    throw error
  }
}

function addHttpFace(error: LeaseholdError): void {
  const statusCode = ERRORS[error.code].http
  const getResponse = () =>
    new Response(JSON.stringify({ code: error.code, detail: error.message, hint: error.hint }), {
      status: statusCode,
      headers: { 'content-type': 'application/problem+json' },
    })
  const shown: HttpFace = { statusCode, status: statusCode, expose: statusCode < 500, getResponse }
  for (const [name, value] of Object.entries(shown)) {
    Object.defineProperty(error, name, { value, configurable: true })
  }
}
