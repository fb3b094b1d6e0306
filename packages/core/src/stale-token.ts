/** As in `tokens.ts`, which cannot be imported here: it imports the errors. */
const COUNTER_BITS = 48n

const IS_OVER = 'this hold is over, and a later holder has opened the resource'
const IS_LOWER = 'the lock service was founded again or restored with lower tokens'
const GIVE_UP = 'give the unit of work up, or repeat it under a new hold'
const RAISE = 'restore it with a higher --epoch, or found it with one'

/** A smaller distance proves nothing: services whose counter starts at 1 (development, tests) double it within a few grants. */
const FAR = 1_000n

/** Describes how far a token is below a mark: by its counter within an epoch, otherwise by its epoch. */
export function belowMark(token: bigint, mark: bigint): string {
  const epochs = (mark >> COUNTER_BITS) - (token >> COUNTER_BITS)
  if (epochs <= 0n) return `${mark - token} below the mark ${mark}`
  return `${epochs} ${epochs === 1n ? 'epoch' : 'epochs'} below the mark ${mark}`
}

/**
 * Whether a stale token more likely comes from a service with lower tokens than from a hold that has ended.
 *
 * The counter of one service only grows, even when its epoch is raised. A counter that has reached the mark's was therefore
 * drawn later than the mark but in a lower epoch, so by another service. A counter below half of the mark's comes from a
 * service that started far lower: counters start at the clock and take years to double.
 */
export function isServiceLower(token: bigint, mark: bigint): boolean {
  const counter = BigInt.asUintN(Number(COUNTER_BITS), token)
  const marked = BigInt.asUintN(Number(COUNTER_BITS), mark)
  if (counter >= marked) return token < mark
  return marked - counter > FAR && counter * 2n < marked
}

/** The hint of a stale token: always both explanations, the likelier one first. */
export function staleHint(token: bigint, mark: bigint | undefined): string {
  if (mark === undefined) return `either ${IS_OVER}: ${GIVE_UP}; or ${IS_LOWER}: ${RAISE}`
  if (isServiceLower(token, mark)) return `most likely ${IS_LOWER}: ${RAISE}; otherwise ${IS_OVER}: ${GIVE_UP}`
  return `most likely ${IS_OVER}: ${GIVE_UP}; if new holds are refused too, ${IS_LOWER}: ${RAISE}`
}
