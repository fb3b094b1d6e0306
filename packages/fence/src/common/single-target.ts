import { InvalidError } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './guard.js'
import type { GuardableHold } from './hold.js'
import { onlyReads, openingOf, type Target } from './resource.js'

/**
 * Returns the mark of a hold for stores that check one mark per write.
 * @throws InvalidError if the hold has several locks and `open` does not choose one
 */
export function singleTarget(
  hold: GuardableHold,
  options: GuardOptions,
  open: OpenOptions | undefined,
  what: string,
): Target {
  const [target, ...more] = openingOf(hold, options, open).targets as [Target, ...Target[]]
  if (more.length > 0) {
    throw new InvalidError(`a hold of several locks: which one protects this ${what}?`, { hint: 'pass { lock }' })
  }
  return target
}

/** @throws InvalidError for a shared hold */
export function checkWrites(target: Target): void {
  if (target.writes) return
  throw onlyReads()
}
