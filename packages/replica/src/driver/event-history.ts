import { type Cursor, type Event, type Index, LAST_ORDINAL } from '@leasehold/core'

export interface EventHistoryOptions {
  /** Most events to keep. */
  readonly events: number
  /** Most bytes that the events may take, estimated. */
  readonly bytes: number
}

export interface RecordedEvent {
  readonly cursor: Cursor
  readonly event: Event
}

const EVENT_BYTES = 160

/**
 * The latest events, for watchers that reconnect. Not part of the replicated state. The n-th event of an entry, counted
 * from 1, has ordinal n.
 */
export class EventHistory {
  readonly #epoch: number
  readonly #options: EventHistoryOptions
  #items: RecordedEvent[] = []
  #sizes: number[] = []
  #start = 0
  #bytes = 0
  /** Events up to this cursor have been dropped. */
  #floor: { index: number; ordinal: number }

  constructor(epoch: number, applied: Index, options: EventHistoryOptions) {
    this.#epoch = epoch
    this.#options = options
    this.#floor = { index: applied, ordinal: LAST_ORDINAL }
  }

  add(index: Index, events: readonly Event[]): void {
    events.forEach((event, i) => {
      const size = eventBytes(event)
      this.#items.push({ cursor: { epoch: this.#epoch, index, ordinal: i + 1 }, event })
      this.#sizes.push(size)
      this.#bytes += size
    })
    while (this.#items.length - this.#start > this.#options.events || this.#bytes > this.#options.bytes) this.#drop()
  }

  /** Returns the events after `from`, oldest first; undefined when some of them have been dropped. */
  since(from: Cursor): readonly RecordedEvent[] | undefined {
    if (from.epoch !== this.#epoch) return undefined
    if (isBefore(from, this.#floor)) return undefined
    let low = this.#start
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(from, (this.#items[middle] as RecordedEvent).cursor)) high = middle
      else low = middle + 1
    }
    return this.#items.slice(low)
  }

  #drop(): void {
    const { cursor } = this.#items[this.#start] as RecordedEvent
    this.#bytes -= this.#sizes[this.#start] as number
    this.#floor = { index: cursor.index, ordinal: cursor.ordinal }
    this.#start++
    if (this.#start > 1024 && this.#start * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#start)
      this.#sizes = this.#sizes.slice(this.#start)
      this.#start = 0
    }
  }
}

function isBefore(
  a: { readonly index: number; readonly ordinal: number },
  b: { readonly index: number; readonly ordinal: number },
): boolean {
  return a.index < b.index || (a.index === b.index && a.ordinal < b.ordinal)
}

function eventBytes(event: Event): number {
  let bytes = EVENT_BYTES
  if (event.kind === 'held') for (const lock of event.grant.locks) bytes += lock.name.length * 2 + 64
  else if (event.kind === 'freed') for (const lock of event.locks) bytes += lock.name.length * 2 + 64
  else if (event.kind === 'queued' || event.kind === 'unqueued')
    for (const name of event.names) bytes += name.length * 2
  else if (event.kind === 'put' || event.kind === 'deleted') bytes += event.key.length * 2
  return bytes
}
