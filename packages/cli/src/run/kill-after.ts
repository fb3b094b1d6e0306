import { InvalidError, parseDuration } from '@leasehold/core'

/** The longest default grace period between SIGTERM and SIGKILL. */
const KILL_AFTER_MAX_MS = 5_000

/** Returns the grace period between SIGTERM and SIGKILL: given, or min(5 s, ttl/6); at most half of the TTL. @throws InvalidError */
export function killAfterOf(ttlMs: number, given: string | undefined): number {
  if (given === undefined) return Math.min(KILL_AFTER_MAX_MS, Math.floor(ttlMs / 6))
  const ms = given === '0' ? 0 : parseDuration(given, '--kill-after')
  if (ms * 2 > ttlMs) {
    throw new InvalidError(`--kill-after ${given} is more than half of the ttl of ${ttlMs} ms`, {
      hint: 'the command would be ended before its first renewal is late: raise --ttl or lower --kill-after',
    })
  }
  return ms
}
