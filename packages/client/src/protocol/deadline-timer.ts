import type { Wire } from './wire.js'

/** One timer for the deadlines of many requests, most of which are answered long before. */
export class DeadlineTimer {
  readonly #wire: Pick<Wire, 'now' | 'after'>
  readonly #checkDeadlines: () => void
  #firesAt = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(wire: Pick<Wire, 'now' | 'after'>, checkDeadlines: () => void) {
    this.#wire = wire
    this.#checkDeadlines = checkDeadlines
  }

  /** Fires at `dueAt` at the latest, by the clock of the wire. */
  schedule(dueAt: number): void {
    if (dueAt >= this.#firesAt) return
    this.#cancel()
    this.#firesAt = dueAt
    const fire = () => {
      this.#firesAt = Number.POSITIVE_INFINITY
      this.#checkDeadlines()
    }
    this.#cancel = this.#wire.after(dueAt - this.#wire.now(), fire, true)
  }

  stop(): void {
    if (this.#firesAt === Number.POSITIVE_INFINITY) return
    this.#cancel()
    this.#firesAt = Number.POSITIVE_INFINITY
  }
}
