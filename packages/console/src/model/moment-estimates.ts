/** How much two responses may differ for the same moment: cluster time moves in steps of up to a second. */
const STEP_MS = 1_200

/**
 * Estimates moments on the local clock from the ages and remaining times that the service reports. Responses differ
 * slightly, because cluster time moves in steps. An estimate is kept while responses agree with it, so that countdowns do
 * not jump.
 */
export class MomentEstimates {
  #moments = new Map<string, number>()
  #next = new Map<string, number>()

  /** Updates the estimate of this key with a reported moment, and returns it. */
  update(key: string, reported: number): number {
    const known = this.#moments.get(key)
    const moment = known !== undefined && Math.abs(reported - known) < STEP_MS ? Math.min(known, reported) : reported
    this.#next.set(key, moment)
    return moment
  }

  /** Ends a response: estimates that it did not update are removed. */
  end(): void {
    this.#moments = this.#next
    this.#next = new Map()
  }
}
