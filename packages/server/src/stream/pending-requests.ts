import type { ServerMessage } from '@leasehold/core'

interface Question {
  readonly answered: () => void
  /** It may still take effect when nobody waits for its answer any more. */
  readonly outlives: boolean
}

/** What one stream has asked for and was not answered yet, as far as limits count it. */
export class PendingRequests {
  /** By correlation, which is the client's: it may use one twice. */
  readonly #open = new Map<number, Question[]>()

  add(correlation: number, answered: () => void, outlives: boolean): void {
    const questions = this.#open.get(correlation)
    if (questions === undefined) this.#open.set(correlation, [{ answered, outlives }])
    else questions.push({ answered, outlives })
  }

  /** Takes note of answers. */
  look(messages: readonly ServerMessage[]): void {
    if (this.#open.size === 0) return
    for (const message of messages) {
      if (message.kind !== 'result' && message.kind !== 'error') continue
      const questions = this.#open.get(message.correlation)
      questions?.shift()?.answered()
      if (questions?.length === 0) this.#open.delete(message.correlation)
    }
  }

  /** The stream is over. */
  close(): void {
    for (const questions of this.#open.values()) {
      for (const { answered, outlives } of questions) if (!outlives) answered()
    }
    this.#open.clear()
  }
}
