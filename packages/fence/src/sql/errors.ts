import { InvalidError, LeaseholdError, UnavailableError } from '@leasehold/core'

/** Codes of the system for a connection that was never made: no statement has been sent. */
export const UNREACHED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']
/** The same, and for one that broke. */
export const NETWORK = [...UNREACHED, 'ECONNRESET', 'EPIPE', 'ETIMEDOUT']

/** Code and number of a driver's error; with mappers on top of the driver they sit in a cause. */
export function found(error: unknown): { readonly code: string | undefined; readonly errno: number | undefined } {
  for (let one = error, depth = 0; typeof one === 'object' && one !== null && depth < 5; depth++) {
    const { code, errno, cause } = one as { code?: unknown; errno?: unknown; cause?: unknown }
    if (typeof code === 'string' && !(one instanceof LeaseholdError)) {
      return { code, errno: typeof errno === 'number' ? errno : undefined }
    }
    one = cause
  }
  return { code: undefined, errno: undefined }
}

export function unavailable(what: string, cause: unknown): UnavailableError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new UnavailableError(`${what}: ${why}`, {
    cause,
    hint: 'nothing was written; the same call may succeed later',
  })
}

export function notSetUp(kind: 'pg' | 'mysql' | 'sqlite', message: string, cause: unknown): InvalidError {
  return new InvalidError(`the guard is not set up: ${message}`, {
    cause,
    hint: `run the migration that \`leasehold guard sql ${kind}\` prints`,
  })
}
