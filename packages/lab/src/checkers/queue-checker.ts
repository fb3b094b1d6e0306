import type { Command, Event, HoldId, LockRequest, SessionId } from '@leasehold/core'
import type { GrantChecker } from './grant-checker.js'
import type { Violations } from './violation.js'

interface Waiter {
  readonly session: SessionId
  readonly request: number
  readonly locks: readonly LockRequest[]
}

/**
 * The waiters, from nothing but commands and events: no grant passes over a waiter for the same lock, and
 * no waiter waits for a free lock.
 */
export class QueueChecker {
  /** By lock, in the order of their coming. */
  readonly #queues = new Map<string, Waiter[]>()
  #touched = new Set<string>()
  /** A hold was handed over: the next grant does not come out of a queue. */
  #moved = false

  readonly #violations: Violations
  readonly #grants: GrantChecker
  /** Whether a lock delay blocks the lock, so that the checker cannot know whether it is free. */
  readonly #isDelayed: (name: string) => boolean

  constructor(violations: Violations, grants: GrantChecker, isDelayed: (name: string) => boolean) {
    this.#violations = violations
    this.#grants = grants
    this.#isDelayed = isDelayed
  }

  /** All waiters are gone. */
  restored(): void {
    this.#queues.clear()
    this.#touched.clear()
  }

  /** What happened in one entry; `grants` has seen it already. */
  entry(commands: readonly Command[], events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind === 'queued') this.#queued(commands, event)
      else if (event.kind === 'unqueued') this.#leave((one) => isOf(one, event), event.names)
      else if (event.kind === 'held') this.#held(event)
      else if (event.kind === 'freed') {
        this.#moved = event.reason === 'moved'
        for (const { name } of event.locks) this.#touched.add(name)
      }
    }
    const names = this.#touched
    this.#touched = new Set()
    for (const name of names) this.#look(name)
  }

  #queued(commands: readonly Command[], event: Event & { kind: 'queued' }): void {
    const command = commands.find((one) => one.kind === 'acquire' && isOf(one, event))
    if (command?.kind !== 'acquire') return
    const { session, request, locks } = command
    for (const { name } of locks) {
      const queue = this.#queues.get(name) ?? []
      queue.push({ session, request, locks })
      this.#queues.set(name, queue)
      this.#touched.add(name)
    }
  }

  #held({ session, grant }: Event & { kind: 'held' }): void {
    const names = grant.locks.map(({ name }) => name)
    if (this.#moved) {
      this.#moved = false
      return
    }
    const first = this.#queues.get(names[0] ?? '')?.find((one) => {
      return one.session === session && one.locks.length === names.length && isAsked(one.locks, grant.locks)
    })
    for (const name of names) {
      const front = this.#queues.get(name)?.[0]
      if (front === undefined || isOf(front, first ?? { session: -1, request: -1 })) continue
      this.#say(grant.hold, name, `granted past request ${front.request} of session ${front.session}, which waits`)
    }
    if (first) this.#leave((one) => isOf(one, first), names)
  }

  #leave(is: (one: Waiter) => boolean, names: readonly string[]): void {
    for (const name of names) {
      const queue = this.#queues.get(name)?.filter((one) => !is(one)) ?? []
      if (queue.length > 0) this.#queues.set(name, queue)
      else this.#queues.delete(name)
      this.#touched.add(name)
    }
  }

  /** After an entry: a waiter that is at the front everywhere, and finds every lock free, was overlooked. */
  #look(name: string): void {
    const front = this.#queues.get(name)?.[0]
    if (front === undefined) return
    for (const lock of front.locks) {
      if (this.#isDelayed(lock.name)) {
        // Looked at again with the next entry: the end of a delay is no event.
        this.#touched.add(name)
        return
      }
      const first = this.#queues.get(lock.name)?.[0]
      if (first === undefined || !isOf(first, front) || !this.#isFree(lock)) return
    }
    this.#violations.report(
      'I14',
      `lock ${name}: request ${front.request} of session ${front.session} waits, and could be granted`,
    )
  }

  #isFree({ name, mode }: LockRequest): boolean {
    const holders = [...this.#grants.holdersOf(name).values()]
    if (mode === 'exclusive') return holders.length === 0
    if (mode === 'shared') return holders.every((other) => other.mode === 'shared')
    return holders.length < mode.permits
  }

  #say(hold: HoldId, name: string, text: string): void {
    this.#violations.report('I14', `lock ${name}, hold ${hold}: ${text}`)
  }
}

interface Numbered {
  readonly session: number
  readonly request: number
}

function isOf(one: Numbered, other: Numbered): boolean {
  return one.session === other.session && one.request === other.request
}

function isAsked(asked: readonly LockRequest[], got: readonly { readonly name: string }[]): boolean {
  return asked.every(({ name }, i) => got[i]?.name === name)
}
