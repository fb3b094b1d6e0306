import { expect } from 'vitest'
import { type Event, LockState, type Push } from '../../src/index.js'

/**
 * What must be true of the visible state after every entry, checked from the outside: exclusion (promise 1), ordered
 * tokens (rule T), slots, no waiter left that could be served, no idle lock kept, a snapshot that loses nothing.
 */
export class InvariantChecker {
  /** Highest token ever granted by lock, and of the last exclusive grant. */
  private readonly highest = new Map<string, { token: number; mode: string; hold: number }>()

  check(state: LockState, events: readonly Event[]): void {
    this.tokensGrow(state, events)
    this.exclusion(state)
    this.nobodyForgotten(state)
    this.roundTrip(state)
  }

  private tokensGrow(state: LockState, events: readonly Event[]): void {
    for (const event of events) {
      if (event.kind !== 'held') continue
      for (const held of event.grant.locks) {
        const before = this.highest.get(held.name)
        const mode = typeof held.mode === 'object' ? 'permits' : held.mode
        if (before !== undefined) {
          const sameGeneration = mode === 'shared' && before.mode === 'shared' && held.token === before.token
          if (!sameGeneration) expect(held.token, `token of ${held.name}`).toBeGreaterThan(before.token)
        }
        if (mode !== 'shared') expect(held.token).toBe(event.grant.hold)
        else expect(held.token).toBeLessThanOrEqual(event.grant.hold)
        this.highest.set(held.name, { token: held.token, mode, hold: event.grant.hold })
      }
      expect(event.grant.hold).toBeLessThanOrEqual(state.machine.counter)
    }
  }

  private exclusion(state: LockState): void {
    const { machine } = state
    const byLock = new Map<string, { exclusive: number; shared: Set<number>; slots: number[] }>()
    for (const hold of machine.holds.values()) {
      if (hold.session !== undefined) {
        expect(machine.sessions.get(hold.session.id)).toBe(hold.session)
        expect(hold.session.holds.has(hold)).toBe(true)
      } else expect(hold.terms.confirmed).toBe(true)
      for (const held of hold.held) {
        const one = byLock.get(held.name) ?? { exclusive: 0, shared: new Set<number>(), slots: [] }
        byLock.set(held.name, one)
        if (held.mode === 'exclusive') one.exclusive++
        else if (held.mode === 'shared') one.shared.add(held.token)
        else one.slots.push(held.slot as number)
      }
    }
    for (const [name, one] of byLock) {
      const kinds = (one.exclusive > 0 ? 1 : 0) + (one.shared.size > 0 ? 1 : 0) + (one.slots.length > 0 ? 1 : 0)
      expect(kinds, `${name} is held in ${kinds} ways`).toBe(1)
      expect(one.exclusive).toBeLessThanOrEqual(1)
      expect(one.shared.size, `${name} has ${one.shared.size} generations`).toBeLessThanOrEqual(1)
      expect(new Set(one.slots).size).toBe(one.slots.length)
      expect(machine.locks.get(name)).toBeDefined()
    }
    for (const lock of machine.locks.values()) {
      const held = byLock.has(lock.name)
      expect(held || (lock.queue?.length ?? 0) > 0 || (lock.delays?.size ?? 0) > 0, `${lock.name} is idle`).toBe(true)
    }
    expect(machine.dirty).toEqual([])
    for (const session of machine.sessions.values()) expect(session.expiresAt).toBeGreaterThan(machine.now)
    for (const delay of machine.delays.values()) expect(delay.dueAt).toBeGreaterThan(machine.now)
    for (const waiter of machine.waiters.values())
      if (waiter.dueAt >= 0) expect(waiter.dueAt).toBeGreaterThan(machine.now)
  }

  /** Naively: is there a waiter at the front of all its queues whose locks would let it in? */
  private nobodyForgotten(state: LockState): void {
    const { machine } = state
    for (const waiter of machine.waiters.values()) {
      const free = waiter.acquire.locks.every(({ name, mode }) => {
        const first = [...machine.waiters.values()].filter((one) =>
          one.acquire.locks.some((lock) => lock.name === name),
        )
        if (first.sort((a, b) => a.arrival - b.arrival)[0] !== waiter) return false
        const lock = machine.locks.get(name)
        const holds = [...machine.holds.values()].flatMap((hold) => hold.held.filter((held) => held.name === name))
        const delays = [...machine.delays.values()].flatMap((delay) => delay.held.filter((held) => held.name === name))
        if (mode === 'exclusive') return holds.length + delays.length === 0
        if (mode === 'shared') return [...holds, ...delays].every((held) => held.mode === 'shared')
        return holds.length + delays.length < (lock?.permits ?? 0)
      })
      if (free) expect.fail(`waiter ${waiter.arrival} could be served`)
    }
  }

  private roundTrip(state: LockState): void {
    const bytes = state.snapshot()
    const copy = LockState.restore(bytes)
    expect(copy.hash()).toBe(state.hash())
    // Byte by byte through `toEqual` would take most of the time of every test that comes here.
    expect(Buffer.compare(copy.snapshot(), bytes)).toBe(0)
  }
}

/** Every push must be of a session that exists, except its end. */
export function checkPushes(state: LockState, pushes: readonly Push[]): void {
  for (const push of pushes) {
    if (push.ended === undefined) expect(push.change?.number).toBeGreaterThan(0)
    else expect(state.machine.sessions.has(push.session)).toBe(false)
  }
}
