import { setTimeout as sleep } from 'node:timers/promises'
import { createLocks, LeaseholdError, type Locks, type WatchEvent, WatchError } from 'leasehold'

interface LockNow {
  /** Hold ids with what they hold. */
  readonly holds: Map<
    bigint,
    { readonly exclusive: boolean; readonly token: bigint; readonly slot: number | undefined; readonly size: number }
  >
  newest: bigint
}

const AGAIN_MS = 200

/**
 * Follows every event of the service while it runs: at no index has a lock two exclusive holds, a shared one beside an exclusive
 * one, or a slot twice; and every new token is greater than all before. What happened in a gap is unknown: the state is read
 * again, and only the tokens' order is judged across it.
 */
export class WatchJudge {
  readonly problems: string[] = []
  events = 0
  gaps = 0
  readonly #locks = new Map<string, LockNow>()
  readonly #client: Locks
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #cursor: readonly number[] = [0, 0, 0]

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
          this.judge(event)
        }
      } catch (error) {
        if (error instanceof WatchError) {
          this.gaps++
          from = undefined
        } else if (!(error instanceof LeaseholdError)) this.problems.push(`the watch ended with ${String(error)}`)
        await sleep(AGAIN_MS)
      }
    }
  }

  async #resync(): Promise<string> {
    for (const lock of this.#locks.values()) lock.holds.clear()
    let cursor: string | undefined
    let at: string | undefined
    do {
      const page = await this.#client.query({ limit: 500, ...(cursor === undefined ? {} : { cursor }) })
      // Pages of different moments: events between them may come again, so that only the first moment is continued from.
      at ??= page.at
      for (const { id, locks } of page.held) {
        for (const held of locks) this.#lock(held.name).holds.set(id, describe(held))
      }
      cursor = page.next
    } while (cursor !== undefined)
    return at
  }

  judge(event: WatchEvent): void {
    this.events++
    const cursor = event.cursor.split(/\D+/).map(Number)
    if (compare(cursor, this.#cursor) <= 0)
      this.problems.push(`event ${event.cursor} came after ${this.#cursor.join('.')}`)
    this.#cursor = cursor
    if (event.kind === 'held') for (const held of event.locks) this.#held(event.id, held, event.cursor)
    if (event.kind === 'freed') for (const { name } of event.locks) this.#lock(name).holds.delete(event.id)
  }

  #held(id: bigint, held: Parameters<typeof describe>[0] & { name: string }, cursor: string): void {
    const lock = this.#lock(held.name)
    if (lock.holds.has(id)) return
    const mine = describe(held)
    const say = (what: string): void => void this.problems.push(`at ${cursor}, ${held.name}: ${what}`)
    let isJoining = false
    for (const [other, theirs] of lock.holds) {
      if (mine.exclusive || theirs.exclusive) say(`${id} was granted while ${other} is held`)
      if (mine.slot !== undefined && mine.slot === theirs.slot) say(`${id} and ${other} have slot ${mine.slot}`)
      if (mine.slot === undefined && !mine.exclusive) {
        isJoining = true
        if (mine.token !== theirs.token)
          say(`shared holds ${id} and ${other} have tokens ${mine.token} and ${theirs.token}`)
      }
    }
    if (lock.holds.size >= mine.size) say(`${id} is one too many of ${mine.size}`)
    if (!isJoining && mine.token <= lock.newest) say(`token ${mine.token} after ${lock.newest}`)
    if (mine.token > lock.newest) lock.newest = mine.token
    lock.holds.set(id, mine)
  }

  #lock(name: string): LockNow {
    let lock = this.#locks.get(name)
    if (lock === undefined) {
      lock = { holds: new Map(), newest: 0n }
      this.#locks.set(name, lock)
    }
    return lock
  }
}

function describe({ mode, token, slot }: { mode: unknown; token: bigint; slot?: number | undefined }) {
  const size = typeof mode === 'object' ? (mode as { permits: number }).permits : Number.POSITIVE_INFINITY
  return { exclusive: mode === 'exclusive', token, slot, size }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i] ?? 0
    if (left !== right) return left - right
  }
  return 0
}
