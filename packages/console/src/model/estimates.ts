/** How much two answers may differ about the same moment: cluster time moves in steps of up to a second. */
const STEP_MS = 1_200

/**
 * Moments (of this machine's clock) that the service tells as ages and remaining times. Each answer tells them a little
 * differently, because cluster time moves in steps. A moment is kept as long as answers agree with it, so that what
 * counts down does not jump.
 */
export class Estimates {
  #moments = new Map<string, number>()
  #next = new Map<string, number>()

  /** The moment known by this key, told anew. */
  tell(key: string, told: number): number {
    const known = this.#moments.get(key)
    const moment = known !== undefined && Math.abs(told - known) < STEP_MS ? Math.min(known, told) : told
    this.#next.set(key, moment)
    return moment
  }

  /** Ends an answer: what it did not tell is forgotten. */
  end(): void {
    this.#moments = this.#next
    this.#next = new Map()
  }
}
