import { FLOOR_PER_MS } from './floor.js'
import { COUNTER_BITS, COUNTER_MAX } from './token-bits.js'

/** So many minutes of a counter's floor between token and mark are more than a late holder explains. */
export const LATE_MINUTES_MAX = 10
const LATE_COUNTS_MAX = BigInt(LATE_MINUTES_MAX * 60_000 * FLOOR_PER_MS)

/** Why a guard refuses a token: its hold is over, or the service that granted it has lower tokens than an earlier one. */
export type StaleCause = 'hold-over' | 'lower-tokens'

/**
 * Which of the two causes is more likely. Counters follow the clock, also across epochs, so they tell what was granted when:
 * - a greater counter in a lower epoch: granted after the mark, by a service that was founded or restored with a lower epoch;
 * - a counter that is more than {@link LATE_MINUTES_MAX} minutes of the clock below that of the mark: a holder would have to be
 *   that late; a service whose clock or `--token-start` was too low is more likely;
 * - everything else: the hold is over.
 */
export function staleCause(token: bigint, mark: bigint): StaleCause {
  const ahead = counterOf(mark) - counterOf(token)
  if (epochOf(token) < epochOf(mark) && ahead < 0n) return 'lower-tokens'
  return ahead > LATE_COUNTS_MAX ? 'lower-tokens' : 'hold-over'
}

/** Where a refused token lies: `5 below the mark 293312004918053`. Both numbers are whole, the difference is in words. */
export function belowMark(token: bigint, mark: bigint | undefined): string {
  if (mark === undefined) return 'the resource has seen a later token'
  if (mark <= token) return `the resource has seen token ${mark}`
  const [lower, upper] = [epochOf(token), epochOf(mark)]
  if (lower === upper) return `${mark - token} below the mark ${mark}`
  return `of epoch ${lower}, below the mark ${mark} of epoch ${upper}`
}

const OVER = 'this hold is over and a later holder has opened the resource'
const GIVE_UP = 'give the unit of work up, or repeat it under a new hold'
const LOWER = 'the lock service was founded again or restored with lower tokens'

/** What to do about a refused token. Names both causes, the more likely one first. */
export function staleHint(token: bigint, mark: bigint | undefined): string {
  if (mark === undefined || staleCause(token, mark) === 'hold-over') {
    const remedy = mark === undefined ? 'a higher --epoch' : `--epoch ${epochOf(mark) + 1n} or higher`
    return `most likely ${OVER}: ${GIVE_UP}; if new holds are refused as well, ${LOWER}: found or restore it with ${remedy}`
  }
  return `most likely ${LOWER}: found or restore it with --epoch ${epochOf(mark) + 1n} or higher; otherwise ${OVER}: ${GIVE_UP}`
}

function epochOf(token: bigint): bigint {
  return token >> COUNTER_BITS
}

function counterOf(token: bigint): bigint {
  return token & BigInt(COUNTER_MAX)
}
