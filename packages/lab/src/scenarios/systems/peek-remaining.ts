import { type Hold, holdInternals } from '@leasehold/client'
import type { Process } from '../../world/index.js'

/**
 * What is left of a hold in milliseconds, looked at from outside: the client does not notice, and its run is the same. Of a
 * stopped process its monotonic clock says how much is left, since its own code, which looks at others as well, stands still.
 */
export function peekRemaining(process: Process, hold: Hold): () => number {
  const { host } = hold[holdInternals]
  let seenMs = Number.POSITIVE_INFINITY
  let seenAtUs = 0
  return () => {
    const nowUs = process.machine.clockUs('monotonic')
    if (process.paused) return seenMs - (nowUs - seenAtUs) / 1000
    seenMs = host.ended === undefined ? host.peek() : 0
    seenAtUs = nowUs
    return seenMs
  }
}
