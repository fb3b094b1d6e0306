import { InvalidError } from '@leasehold/core'
import { describe } from './hold.js'
import type { CasPlatform } from './platform.js'

export const ATTEMPTS_DEFAULT = 10
const ATTEMPTS_MAX = 1_000
/** The pause after the n-th attempt is random below `min(2^n × PAUSE_FIRST_MS, PAUSE_MAX_MS)`. */
const PAUSE_FIRST_MS = 10
const PAUSE_MAX_MS = 1_000

/** @throws InvalidError */
export function checkedAttempts(attempts: number = ATTEMPTS_DEFAULT): number {
  if (Number.isInteger(attempts) && attempts >= 1 && attempts <= ATTEMPTS_MAX) return attempts
  throw new InvalidError(`attempts is a number between 1 and ${ATTEMPTS_MAX}, not ${describe(attempts)}`)
}

/** Waits after the n-th attempt, counted from 1. */
export async function pauseAfter(n: number, platform: CasPlatform): Promise<void> {
  const limitMs = Math.min(2 ** n * PAUSE_FIRST_MS, PAUSE_MAX_MS)
  await platform.pause(platform.random() * limitMs)
}
