/** Smaller bursts leave as one frame. */
const BURST_MIN = 32
/** A frame that leaves early has at least this part of all messages without an answer. */
const PARTS = 4
/** How many times as long as this side the service may take. */
const SERVICE_SHARE = 6
/** Part of the last sample in the averages. */
const WEIGHT = 1 / 8

/**
 * When a part of a large burst leaves before the rest of it is made: then the service works on it while this side goes on, and
 * answers while this side waits, instead of the two taking turns. It costs more frames and more flushes, so it is worth it only
 * where the service (with network and disk) takes not much longer for its part than this side for its own. Both are measured.
 */
export class EarlyFlush {
  /** From sending to the next answer, and from the answers to the last message that they have caused, in milliseconds. */
  #service = 0
  #own = 0
  #heardAt: number | undefined
  #sentAt: number | undefined
  #sent = 0

  shouldFlush(waiting: number, awaited: number): boolean {
    return waiting >= BURST_MIN && waiting * PARTS >= awaited && this.#service < SERVICE_SHARE * this.#own
  }

  heard(now: number): void {
    this.#heardAt = now
    if (this.#sentAt === undefined) return
    this.#service += (now - this.#sentAt - this.#service) * WEIGHT
    this.#sentAt = undefined
  }

  sent(messages: number, now: number): void {
    this.#sent += messages
    if (messages >= BURST_MIN) this.#sentAt ??= now
  }

  /** Everything that was caused by what was heard has been made; `waiting` messages of it have not left yet. */
  turnEnded(waiting: number, now: number): void {
    const burst = this.#sent + waiting >= BURST_MIN
    if (burst && this.#heardAt !== undefined) this.#own += (now - this.#heardAt - this.#own) * WEIGHT
    this.#heardAt = undefined
    this.#sent = 0
  }
}
