import {
  type Cursor,
  EpochChangedError,
  type Event,
  formatCursor,
  LAST_ORDINAL,
  type LeaseholdError,
  matchesPrefix,
  type MayRead,
  redactEvent,
  WatchError,
} from '@leasehold/core'
import type { AppliedBatch } from '@leasehold/replica'
import { EVENT_BYTES_MAX, EVENT_HEARTBEAT_MS } from '../limits.js'
import type { ReplicaClient } from '../replica-client.js'
import { problemOf } from './problems.js'
import { eventJson } from './json-views.js'

/** Whether `a` comes after `b`, both of one epoch. */
function isAfter(a: Cursor, b: Cursor): boolean {
  return a.index > b.index || (a.index === b.index && a.ordinal > b.ordinal)
}

export interface EventWatch {
  readonly prefix: string
  readonly from: Cursor | undefined
  /** Whether the caller may read a name. */
  readonly mayRead: MayRead
  /** The error that ends the stream, as its last event, once the caller has lost its permission. */
  readonly revocation: () => LeaseholdError | undefined
}

/**
 * Serves watches as server-sent events. The id of each event is its cursor, so a browser that reconnects resumes where it
 * stopped. Missed events are reported by a `gap` or `epoch-changed` event, whose id is the current position: after it,
 * the client must read the state again.
 */
export class EventStreams {
  readonly #replica: ReplicaClient
  readonly #open = new Set<() => void>()

  constructor(replica: ReplicaClient) {
    this.#replica = replica
  }

  get size(): number {
    return this.#open.size
  }

  open(watch: EventWatch): ReadableStream<Uint8Array> {
    let end = (): void => {}
    const strategy = new ByteLengthQueuingStrategy({ highWaterMark: EVENT_BYTES_MAX })
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          end = this.#start(controller, watch)
        },
        cancel: () => end(),
      },
      strategy,
    )
  }

  /** Closes all streams cleanly; their clients can resume from their last event at another member. */
  stop(): void {
    for (const end of this.#open) end()
  }

  #start(
    controller: ReadableStreamDefaultController<Uint8Array>,
    { prefix, from, mayRead, revocation }: EventWatch,
  ): () => void {
    const { member } = this.#replica
    let last = from ?? this.#now()
    let index = member.stale().index
    let stopListening = (): void => {}
    const end = () => {
      if (!this.#open.delete(end)) return
      stopListening()
      clearInterval(heartbeat)
      try {
        controller.close()
      } catch {
        // The client closed it first.
      }
    }
    const send = (text: string) => {
      if (!this.#open.has(end)) return
      if ((controller.desiredSize ?? 0) <= 0) {
        // The events of a client that does not read would pile up in memory.
        this.#replica.log.warn('closed an event stream: its client reads too slowly', { bytes: EVENT_BYTES_MAX })
        end()
        return
      }
      const revoked = revocation()
      if (revoked === undefined) return controller.enqueue(Buffer.from(text, 'utf8'))
      controller.enqueue(Buffer.from(eventText(revoked.code, last, problemOf(revoked)), 'utf8'))
      end()
    }
    const emit = (cursor: Cursor, event: Event) => {
      if (!isAfter(cursor, last)) return
      last = cursor
      if (!matchesPrefix(prefix, event)) return
      send(eventText(event.kind, cursor, eventJson(cursor.epoch, redactEvent(event, mayRead))))
    }
    const reportGap = (error: WatchError | EpochChangedError) => {
      last = this.#now()
      send(eventText(error.code, last, problemOf(error)))
    }
    const heartbeat = setInterval(() => send(': still here\n\n'), EVENT_HEARTBEAT_MS)
    this.#open.add(end)
    send(`retry: 1000\n: cluster ${member.status.cluster} epoch ${member.status.epoch}\n\n`)
    stopListening = member.onApplied((batch) => {
      if (batch.index > index + 1) reportGap(gap())
      index = batch.index
      forEachEvent(batch, member.status.epoch, emit)
    })
    if (from !== undefined) this.#catchUp(from, emit, reportGap)
    return end
  }

  #catchUp(
    from: Cursor,
    emit: (cursor: Cursor, event: Event) => void,
    reportGap: (error: WatchError | EpochChangedError) => void,
  ): void {
    const { epoch } = this.#replica.member.status
    if (from.epoch !== epoch) {
      reportGap(new EpochChangedError(`the cursor is from epoch ${from.epoch}, but the service is in epoch ${epoch}`))
      return
    }
    const missed = this.#replica.member.history(from)
    if (missed === undefined) reportGap(gap())
    else for (const { cursor, event } of missed) emit(cursor, event)
  }

  #now(): Cursor {
    const { member } = this.#replica
    return { epoch: member.status.epoch, index: member.stale().index, ordinal: LAST_ORDINAL }
  }
}

function forEachEvent(batch: AppliedBatch, epoch: number, emit: (cursor: Cursor, event: Event) => void): void {
  batch.events.forEach((event, i) => emit({ epoch, index: batch.index, ordinal: i + 1 }, event))
}

function gap(): WatchError {
  return new WatchError('events between the cursor and now are no longer in memory', {
    hint: 'read GET /v1/locks again; later events follow on this stream',
  })
}

function eventText(kind: string, cursor: Cursor, data: unknown): string {
  return `event: ${kind}\nid: ${formatCursor(cursor)}\ndata: ${JSON.stringify(data)}\n\n`
}
