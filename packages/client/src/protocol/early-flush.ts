/** Smaller bursts leave as one frame. */
const BURST_MIN = 32
/** An early frame has at least this part of all unanswered messages. */
const PARTS = 4
/** The service may take this many times as long as this side. */
const SERVICE_SHARE = 6
/** Weight of the last sample in the averages. */
const WEIGHT = 1 / 8

/**
 * Decides when a part of a large burst is sent before the rest: then the service works on it while this side continues, and
 * answers while this side waits, instead of the two taking turns. It costs more frames and more flushes, so it pays only
 * if the service (with network and disk) does not take much longer for its part than this side for its own. Both are measured.
 */
export class EarlyFlush {
  /** Averages in milliseconds: from sending to the next answer, and from answers to the last message caused by them. */
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

  /** All messages caused by the last answers are queued; `waiting` of them are unsent. */
  turnEnded(waiting: number, now: number): void {
    const burst = this.#sent + waiting >= BURST_MIN
    if (burst && this.#heardAt !== undefined) this.#own += (now - this.#heardAt - this.#own) * WEIGHT
    this.#heardAt = undefined
    this.#sent = 0
  }
}
