import type { Mode } from '@leasehold/core'
import { TokenPairs } from '@leasehold/lab'
import type { WatchEvent } from 'leasehold'

interface LockNow {
  /** Hold ids with what they hold. */
  readonly holds: Map<
    bigint,
    { readonly exclusive: boolean; readonly token: bigint; readonly slot: number | undefined; readonly size: number }
  >
  /** Token of the last shared generation. */
  generation: bigint
}

/**
 * What events of the service say, one after the other: at no index has a lock two exclusive holds, a shared one beside an
 * exclusive one, or a slot twice; every new token is greater than all before; and cursors only grow.
 */
export class EventJudge {
  readonly problems: string[] = []
  events = 0
  readonly #locks = new Map<string, LockNow>()
  readonly #pairs = new TokenPairs()
  #cursor: readonly number[] = [0, 0, 0]

  /** Events were missed: the holds are sent again, and only the order of tokens and cursors is judged across the gap. */
  restart(): void {
    for (const lock of this.#locks.values()) lock.holds.clear()
  }

  /** A hold that is there after a gap. */
  present(id: bigint, held: Held): void {
    this.#lock(held.name).holds.set(id, describe(held))
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

  #held(id: bigint, held: Held, cursor: string): void {
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
    const { name, token, mode } = held
    const fault = this.#pairs.granted({
      lock: name,
      token,
      mode,
      hold: `hold ${id}`,
      incarnation: this.#cursor[0] ?? 0,
    })
    if (fault !== undefined) say(fault.text)
    if (held.mode === 'shared') {
      if (!isJoining && token === lock.generation) say(`token ${token} of a generation that has ended`)
      lock.generation = token
    }
    lock.holds.set(id, mine)
  }

  #lock(name: string): LockNow {
    let lock = this.#locks.get(name)
    if (lock === undefined) {
      lock = { holds: new Map(), generation: 0n }
      this.#locks.set(name, lock)
    }
    return lock
  }
}

interface Held {
  readonly name: string
  readonly mode: Mode
  readonly token: bigint
  readonly slot?: number | undefined
}

function describe({ mode, token, slot }: Held) {
  const size = typeof mode === 'object' ? mode.permits : Number.POSITIVE_INFINITY
  return { exclusive: mode === 'exclusive', token, slot, size }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i] ?? 0
    if (left !== right) return left - right
  }
  return 0
}
