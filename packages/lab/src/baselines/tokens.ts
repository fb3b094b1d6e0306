import { type GuardableHold, handHeld } from '@leasehold/fence'

/** What a guard takes, from a number that a baseline uses as token. It does no check of its own. No guard takes 0. */
export function guardableOf(lock: string, token: bigint | undefined): GuardableHold | undefined {
  return token === undefined || token < 1n ? undefined : handHeld(lock, token)
}
