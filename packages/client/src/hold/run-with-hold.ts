import { HoldLostError } from '@leasehold/core'
import { keepAlive } from '../async/timers.js'
import { type Hold, holdInternals } from './hold.js'

/**
 * Runs `body` under `hold` and releases the hold in any case. The outcome:
 * the body threw → its error; it returned and the hold was lost → `HoldLostError` with the value in `.result`;
 * it returned and only the release failed → the value, and a warning. The process stays alive meanwhile.
 */
export async function runWithHold<T>(hold: Hold, body: (hold: Hold) => T | Promise<T>): Promise<T> {
  const waitEnds = keepAlive(hold[holdInternals].host.platform)
  try {
    return await runAndRelease(hold, body)
  } finally {
    waitEnds()
  }
}

async function runAndRelease<T>(hold: Hold, body: (hold: Hold) => T | Promise<T>): Promise<T> {
  let result: T
  try {
    result = await body(hold)
  } catch (error) {
    await hold[Symbol.asyncDispose]()
    throw error
  }
  const releasedByBody = hold.state === 'released'
  try {
    const { released } = await hold.release()
    if (!released && !releasedByBody) throw await lostWith(hold, result)
  } catch (error) {
    if (error instanceof HoldLostError) throw error
    hold.warnReleaseFailed(error)
  }
  return result
}

async function lostWith(hold: Hold, result: unknown): Promise<HoldLostError> {
  const lost = (await hold.lost) ?? hold.gone ?? new HoldLostError('expired', 'the hold was gone at its release')
  lost.result = result
  return lost
}
