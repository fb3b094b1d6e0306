import { PER_MILLION } from './random.js'

/** True time per local time: a million is a perfect clock, 0 stands still. */
const RATE_MAX = 2 * PER_MILLION

/**
 * A clock of a machine, in whole microseconds: a straight line over true time that can change its slope or jump.
 * Exact integer arithmetic for any span below 2^53 µs.
 */
export class RateClock {
  #baseTrueUs: number
  #baseLocalUs: number
  #rate: number

  constructor(trueUs: number, localUs: number, ratePpm = 0) {
    this.#baseTrueUs = trueUs
    this.#baseLocalUs = localUs
    this.#rate = checkRate(PER_MILLION + ratePpm)
  }

  /** What the clock shows at `trueUs`, which is not before its last change. */
  at(trueUs: number): number {
    return this.#baseLocalUs + this.#forward(trueUs - this.#baseTrueUs)
  }

  /** The first moment at which it shows `localUs` or more; undefined: never, as it goes now. */
  when(localUs: number): number | undefined {
    const span = localUs - this.#baseLocalUs
    if (span <= 0) return this.#baseTrueUs
    if (this.#rate === 0) return undefined
    const whole = Math.floor(span / this.#rate)
    const rest = span - whole * this.#rate
    return this.#baseTrueUs + whole * PER_MILLION + Math.ceil((rest * PER_MILLION) / this.#rate)
  }

  /** Parts per million that it runs fast from now on; −1 000 000: it stands still. */
  setRate(trueUs: number, ratePpm: number): void {
    this.#rebase(trueUs)
    this.#rate = checkRate(PER_MILLION + ratePpm)
  }

  step(trueUs: number, byUs: number): void {
    this.#rebase(trueUs)
    this.#baseLocalUs += byUs
  }

  #rebase(trueUs: number): void {
    this.#baseLocalUs = this.at(trueUs)
    this.#baseTrueUs = trueUs
  }

  #forward(span: number): number {
    const whole = Math.floor(span / PER_MILLION)
    const rest = span - whole * PER_MILLION
    return whole * this.#rate + Math.floor((rest * this.#rate) / PER_MILLION)
  }
}

export const STANDS_STILL_PPM = -PER_MILLION

function checkRate(rate: number): number {
  if (Number.isInteger(rate) && rate >= 0 && rate <= RATE_MAX) return rate
  throw new RangeError(`a clock runs at 0 … ${RATE_MAX} per million, not ${rate}`)
}
