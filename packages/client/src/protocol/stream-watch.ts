import {
  type Cursor,
  EpochChangedError,
  type Event,
  type EventsMessage,
  type LeaseholdError,
  type WatchMessage,
  WatchError,
} from '@leasehold/core'

export interface WatchItem {
  readonly cursor: Cursor
  readonly event: Event
}

/** Events that may wait for a slow consumer; beyond it the watch ends with `gap`. */
export const WATCH_BUFFER_MAX = 10_000

/**
 * One watch over any number of connections: it is subscribed again after the last event that arrived. Events that the
 * cursor has passed already are dropped, so none is repeated or out of order.
 */
export class StreamWatch {
  readonly prefix: string
  #cursor: Cursor
  #items: WatchItem[] = []
  #error: LeaseholdError | undefined
  #done = false
  #wake: () => void = () => {}

  constructor(prefix: string, from: Cursor) {
    this.prefix = prefix
    this.#cursor = from
  }

  message(correlation: number): WatchMessage {
    return { kind: 'watch', correlation, prefix: this.prefix, from: this.#cursor }
  }

  received(message: EventsMessage): void {
    // After a lost event, later ones must not arrive before the error.
    if (this.#error) return
    for (const { ordinal, event } of message.items) {
      const cursor: Cursor = { epoch: this.#cursor.epoch, index: message.index, ordinal }
      const { index, ordinal: last } = this.#cursor
      if (cursor.index < index || (cursor.index === index && ordinal <= last)) continue
      if (this.#items.length >= WATCH_BUFFER_MAX) {
        return this.fail(new WatchError(`the watch fell behind: ${WATCH_BUFFER_MAX} events wait for their reader`))
      }
      this.#cursor = cursor
      this.#items.push({ cursor, event })
    }
    this.#wake()
  }

  /** Connected to a service of `epoch`. */
  connected(epoch: number): void {
    if (epoch !== this.#cursor.epoch) this.fail(new EpochChangedError(`the service is of epoch ${epoch} now`))
  }

  fail(error: LeaseholdError): void {
    this.#error ??= error
    this.#wake()
  }

  stop(): void {
    this.#done = true
    this.#wake()
  }

  /** The events; ends after `stop`, throws after `fail` when the events before it were read. */
  async *items(): AsyncGenerator<WatchItem, void, void> {
    while (!this.#done) {
      const items = this.#items
      this.#items = []
      for (const item of items) {
        yield item
        if (this.#done) return
      }
      if (this.#items.length > 0) continue
      if (this.#error) throw this.#error
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        if (this.#done) resolve()
      })
    }
  }
}
