import { InvalidError, LeaseholdError } from '@leasehold/core'

/** System codes for a connection that was never established, so that no statement was sent. */
export const UNREACHED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']
/** These, and the codes for a connection that broke. */
export const NETWORK = [...UNREACHED, 'ECONNRESET', 'EPIPE', 'ETIMEDOUT']

/** Returns code and number of a driver's error. Mappers wrap it, so its causes are searched too. */
export function codesOf(error: unknown): { readonly code: string | undefined; readonly errno: number | undefined } {
  for (let one = error, depth = 0; typeof one === 'object' && one !== null && depth < 5; depth++) {
    const { code, errno, cause } = one as { code?: unknown; errno?: unknown; cause?: unknown }
    if (typeof code === 'string' && !(one instanceof LeaseholdError)) {
      return { code, errno: typeof errno === 'number' ? errno : undefined }
    }
    one = cause
  }
  return { code: undefined, errno: undefined }
}

/** The tables of the guard do not exist. */
export function notSetUp(kind: 'pg' | 'mysql' | 'sqlite', message: string, cause: unknown): InvalidError {
  return new InvalidError(`the guard is not set up: ${message}`, {
    cause,
    hint: `run the migration that \`leasehold guard sql ${kind}\` prints`,
  })
}
