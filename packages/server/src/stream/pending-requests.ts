import type { ServerMessage } from '@leasehold/core'

interface PendingRequest {
  readonly answered: () => void
  /** Whether the request may take effect after its stream was closed. */
  readonly outlivesStream: boolean
}

/** The requests of one stream that count for a quota and were not answered yet. */
export class PendingRequests {
  /** By correlation id, which the client chooses: it may use one twice. */
  readonly #open = new Map<number, PendingRequest[]>()

  add(correlation: number, answered: () => void, outlivesStream: boolean): void {
    const requests = this.#open.get(correlation)
    if (requests === undefined) this.#open.set(correlation, [{ answered, outlivesStream }])
    else requests.push({ answered, outlivesStream })
  }

  /** Removes the requests that these messages answer. */
  remove(messages: readonly ServerMessage[]): void {
    if (this.#open.size === 0) return
    for (const message of messages) {
      if (message.kind !== 'result' && message.kind !== 'error') continue
      const requests = this.#open.get(message.correlation)
      requests?.shift()?.answered()
      if (requests?.length === 0) this.#open.delete(message.correlation)
    }
  }

  /** Releases the requests that cannot take effect after the stream was closed. */
  close(): void {
    for (const requests of this.#open.values()) {
      for (const { answered, outlivesStream } of requests) if (!outlivesStream) answered()
    }
    this.#open.clear()
  }
}
