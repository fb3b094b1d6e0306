import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, LeaseholdError, type Locks, WatchError } from 'leasehold'
import { EventJudge } from './events.js'

const AGAIN_MS = 200

/** Follows every event of the service while it runs. What happened in a gap is unknown: the state is read again. */
export class WatchJudge {
  readonly judge = new EventJudge()
  gaps = 0
  readonly #client: Locks
  readonly #stop = new AbortController()
  readonly #done: Promise<void>

  constructor(url: string) {
    this.#client = createLocks(url, { clientName: 'judge' })
    this.#done = this.#follow()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#done
    await this.#client.close()
  }

  async #follow(): Promise<void> {
    let from: string | undefined
    while (!this.#stop.signal.aborted) {
      try {
        from ??= await this.#resync()
        for await (const event of this.#client.watch({ from, signal: this.#stop.signal })) {
          from = event.cursor
          this.judge.judge(event)
        }
      } catch (error) {
        if (error instanceof WatchError) {
          this.gaps++
          from = undefined
        } else if (!(error instanceof LeaseholdError)) this.judge.problems.push(`the watch ended with ${String(error)}`)
        await sleep(AGAIN_MS)
      }
    }
  }

  async #resync(): Promise<string> {
    this.judge.restart()
    let cursor: string | undefined
    let at: string | undefined
    do {
      const page = await this.#client.query({ limit: 500, ...(cursor === undefined ? {} : { cursor }) })
      // Pages of different moments: events between them may come again, so that only the first moment is continued from.
      at ??= page.at
      for (const { id, locks } of page.held) {
        for (const held of locks) this.judge.present(id, held)
      }
      cursor = page.next
    } while (cursor !== undefined)
    return at
  }
}
