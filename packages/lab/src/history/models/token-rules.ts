import { HistoryError } from '../history-error.js'
import type { Operation } from '../operation.js'

/**
 * The token of the newest grant as far as a history tells it.
 * `token` is null when the answer of that grant was lost; it is then at least `floor`, which counts such grants one by one.
 */
export interface NewestGrant {
  readonly token: bigint | null
  readonly floor: bigint
}

/** No grant yet: tokens count from one. */
export const NO_GRANT: NewestGrant = { token: null, floor: 0n }

/** The newest grant after one more, or undefined if its token does not grow (rule T). */
export function grantAfter(newest: NewestGrant, token: bigint | undefined): NewestGrant | undefined {
  if (token === undefined) return { token: null, floor: newest.floor + 1n }
  return token > newest.floor ? { token, floor: token } : undefined
}

/** The grant once a later operation has told its token, or undefined if that contradicts what is known. */
export function tokenTold(grant: NewestGrant, token: bigint | undefined): NewestGrant | undefined {
  if (token === undefined || grant.token === token) return grant
  return grant.token === null && token >= grant.floor ? { token, floor: token } : undefined
}

/**
 * What is left of the newest grant when the lock is free: only its floor. If neither the grant nor its end was acknowledged,
 * the lock is as it was before: the two need not have happened.
 */
export function floorAfter(newest: NewestGrant, release: Operation): NewestGrant {
  const isUnproven = newest.token === null && release.outcome === 'unknown'
  return { token: null, floor: isUnproven ? newest.floor - 1n : newest.floor }
}

/** What a newest grant tells, for people; equal exactly for equal grants. */
export function grantText({ token, floor }: NewestGrant): string {
  return token === null ? `last token ${floor} or later` : `token ${token}`
}

/** Whether any grant of a history tells a token. */
export function tellsTokens(operations: readonly Operation[]): boolean {
  return operations.some((operation) => operation.op === 'acquire' && operation.token !== undefined)
}

/** @throws HistoryError if grants were acknowledged and none of them tells a token */
export function requireTokens(operations: readonly Operation[]): void {
  if (tellsTokens(operations)) return
  const grant = operations.find((operation) => operation.op === 'acquire' && operation.outcome === 'ok')
  if (grant !== undefined) throw new HistoryError('no acquire of this lock tells a token', grant.line)
}
