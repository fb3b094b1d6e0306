import { HoldLostError, type Mode } from '@leasehold/core'
import type { GuardableHold } from '../../src/common/hold.js'

export interface TestHold extends GuardableHold {
  /** Makes `assertHeld` throw. */
  lose(): void
  readonly checks: number
}

/** A hold with a given token: all that a guard sees of a service. */
export function holdOf(token: bigint, name = 'billing/invoice-42', mode: Mode = 'exclusive', slot?: number): TestHold {
  return holdOfLocks([{ name, mode, token, ...(slot === undefined ? {} : { slot }) }])
}

export function holdOfLocks(locks: { name: string; mode: Mode; token: bigint; slot?: number }[]): TestHold {
  let lost = false
  let checks = 0
  return {
    locks,
    names: locks.map((lock) => lock.name),
    mode: locks[0]?.mode ?? 'exclusive',
    tokenOf: (name) => locks.find((lock) => lock.name === name)?.token as bigint,
    slotOf: (name) => locks.find((lock) => lock.name === name)?.slot,
    assertHeld() {
      checks++
      if (lost) throw new HoldLostError('deadline', 'lost by the test')
    },
    lose() {
      lost = true
    },
    get checks() {
      return checks
    },
  }
}
