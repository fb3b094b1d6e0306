/** The counter is the lower part of a token, below the epoch. `tokens.ts` says the same, and imports the errors. */
const COUNTER_BITS = 48n

const IS_OVER = 'this hold is over, and a later holder has opened the resource'
const IS_LOWER = 'the lock service was founded again or restored with lower tokens'
const GIVE_UP = 'give the unit of work up, or repeat it under a new hold'
const RAISE = 'restore it with a higher --epoch, or found it with one'

/** Services with a small start (development, tests) grant a few locks and are at twice the number. */
const FAR = 1_000n

/** How far a token is below a mark, in words: by its counter within an epoch, by its epoch otherwise. */
export function belowMark(token: bigint, mark: bigint): string {
  const epochs = (mark >> COUNTER_BITS) - (token >> COUNTER_BITS)
  if (epochs <= 0n) return `${mark - token} below the mark ${mark}`
  return `${epochs} ${epochs === 1n ? 'epoch' : 'epochs'} below the mark ${mark}`
}

/**
 * Whether a refused token comes from a service with lower tokens, more likely than from a hold that is over.
 * The counter of one service only grows, also when its epoch is raised. So a counter that has reached the mark's was
 * drawn later than the mark, in a lower epoch: by another service. A counter below half of the mark's is from a service
 * that started far lower: counters start at the clock, and take years to double.
 */
export function isServiceLower(token: bigint, mark: bigint): boolean {
  const counter = BigInt.asUintN(Number(COUNTER_BITS), token)
  const marked = BigInt.asUintN(Number(COUNTER_BITS), mark)
  if (counter >= marked) return token < mark
  return marked - counter > FAR && counter * 2n < marked
}

/** What a refusal can mean: always both possibilities, the likely one first. */
export function staleHint(token: bigint, mark: bigint | undefined): string {
  if (mark === undefined) return `either ${IS_OVER}: ${GIVE_UP}; or ${IS_LOWER}: ${RAISE}`
  if (isServiceLower(token, mark)) return `most likely ${IS_LOWER}: ${RAISE}; otherwise ${IS_OVER}: ${GIVE_UP}`
  return `most likely ${IS_OVER}: ${GIVE_UP}; if new holds are refused too, ${IS_LOWER}: ${RAISE}`
}
