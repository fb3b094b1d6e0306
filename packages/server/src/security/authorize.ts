import type { AccessVerb } from '@leasehold/core'

export type { AccessVerb }

export interface AccessRequest {
  readonly verb: AccessVerb
  /** Locks, registers or prefixes; `''` is the whole service. Empty: a handle in the request proves the permission. */
  readonly names: readonly string[]
  /** The key that the caller presented; '' without one. */
  readonly apiKey: string
  /** Address and port of the caller, for the log. */
  readonly remote: string
}

/**
 * Authorizes every operation before it becomes a command: throws an AccessError, or returns.
 * @example
 * const readOnly: Authorize = ({ verb }) => {
 *   if (verb !== 'read') throw new AccessError('this service is read-only', { code: 'forbidden' })
 * }
 */
export type Authorize = (request: AccessRequest) => void
