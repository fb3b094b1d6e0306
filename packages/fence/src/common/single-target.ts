import { InvalidError } from '@leasehold/core'
import type { GuardOptions, OpenOptions } from './guard.js'
import type { GuardableHold } from './hold.js'
import { onlyReads, openingOf, type Target } from './resource.js'

/**
 * The one mark of a step that can check only one: several would have to live in one object.
 * @throws InvalidError
 */
export function singleTarget(
  hold: GuardableHold,
  options: GuardOptions,
  open: OpenOptions | undefined,
  what: string,
): Target {
  const [target, ...more] = openingOf(hold, options, open).targets as [Target, ...Target[]]
  if (more.length > 0) {
    throw new InvalidError(`a hold of several locks: which one protects this ${what}?`, { hint: 'say { lock }' })
  }
  return target
}

/** @throws InvalidError for a shared hold */
export function checkWrites(target: Target): void {
  if (target.writes) return
  throw onlyReads()
}
