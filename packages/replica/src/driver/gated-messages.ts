import type { Message } from '@leasehold/raft'

/** Messages that must not leave before what they promise is durable, in the order of their flushes. */
export class GatedMessages {
  readonly #waiting: { readonly sequence: number; readonly messages: readonly Message[] }[] = []

  /** Holds messages back until the flush `sequence` is durable. */
  add(sequence: number, messages: readonly Message[]): void {
    if (messages.length > 0) this.#waiting.push({ sequence, messages })
  }

  /** Calls `send` for every message that waited for flushes up to `sequence`. */
  release(sequence: number, send: (message: Message) => void): void {
    for (let [first] = this.#waiting; first !== undefined && first.sequence <= sequence; [first] = this.#waiting) {
      this.#waiting.shift()
      for (const message of first.messages) send(message)
    }
  }
}
