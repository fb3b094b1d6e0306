import type { AccessVerb } from '@leasehold/core'

export type { AccessVerb }

export interface AccessRequest {
  readonly verb: AccessVerb
  /** Locks, registers or prefixes; `''` is the whole service. Empty: the caller proves its right by a handle. */
  readonly names: readonly string[]
  /** What the caller presented as its key; '' when nothing. */
  readonly apiKey: string
  /** Where it comes from, for the log. */
  readonly remote: string
}

/**
 * Decides over every operation before it becomes a command. Throws an AccessError, or returns.
 * @example
 * const readOnly: Authorize = ({ verb }) => {
 *   if (verb !== 'read') throw new AccessError('this door is for readers', { code: 'forbidden' })
 * }
 */
export type Authorize = (request: AccessRequest) => void
