import type { EventType, HistoryEvent } from './event.js'
import { pairEvents } from './event.js'
import type { Operation } from '@leasehold/lab'

/** What a caller tells about an operation; `process`, `type` and `id` are the recorder's. */
export type RecordedCall = Omit<HistoryEvent, 'type' | 'id' | 'line' | 'op'> & { readonly op: string }
export type RecordedAnswer = Omit<HistoryEvent, 'type' | 'id' | 'line' | 'op' | 'process' | 'key'>

/** The open end of a recorded operation. */
export interface RecordedOperation {
  /** It happened. */
  ok(answer?: RecordedAnswer): void
  /** It certainly did not happen. */
  fail(): void
  /** Its answer was lost; it may still happen. */
  unknown(answer?: RecordedAnswer): void
}

/**
 * Collects a history in memory, in the order of the calls to it: call {@link invoke} before an operation is sent and its end
 * after the answer has come. Operations without an end count as unknown.
 *
 * @example
 * const call = recorder.invoke({ process: 'p1', op: 'acquire', key: 'jobs' })
 * const hold = await locks.acquire('jobs')
 * call.ok({ token: hold.token })
 */
export class HistoryRecorder {
  readonly #all: HistoryEvent[] = []
  #calls = 0

  invoke(call: RecordedCall): RecordedOperation {
    const id = String(++this.#calls)
    this.#all.push({ ...call, type: 'invoke', id })
    let hasEnded = false
    const end = (type: EventType, answer: RecordedAnswer = {}) => {
      if (hasEnded) return
      hasEnded = true
      this.#all.push({ ...answer, process: call.process, op: call.op, type, id })
    }
    return {
      ok: (answer) => end('ok', answer),
      fail: () => end('fail'),
      unknown: (answer) => end('info', answer),
    }
  }

  /** The events so far, to be written down with `formatJsonl`. */
  events(): readonly HistoryEvent[] {
    return this.#all
  }

  operations(): Operation[] {
    return pairEvents(this.#all)
  }
}
