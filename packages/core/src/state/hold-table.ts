import type { HoldId } from '../brand.js'
import type { EndReason, Grant, HeldLock } from '../operations.js'
import { assert } from '../assert.js'
import { DEADLINE_DELAY, deadlineAfter } from './deadlines.js'
import type { Machine } from './machine.js'
import { type Answer, type Delay, type Hold, isIdle, type Lock, type Session } from './elements.js'
import { resolveAnswer } from './answers.js'

export function grantOf(hold: Hold): Grant {
  const { secret } = hold.terms
  return secret === undefined ? withoutSecret(hold) : { hold: hold.id, locks: hold.held, secret }
}

/** Adds a hold to the state and to its locks: `places[i]` is the lock of `held[i]`. */
export function addHold(machine: Machine, hold: Hold, places: readonly Lock[]): void {
  machine.holds.set(hold.id, hold)
  hold.session?.holds.add(hold)
  for (let i = 0; i < places.length; i++) {
    const lock = places[i] as Lock
    const held = hold.held[i] as HeldLock
    const { semaphore, readers } = lock
    if (held.mode === 'exclusive') {
      const free = lock.exclusive === undefined && readers === undefined
      assert(free, `two holds of ${JSON.stringify(lock.name)}, one exclusive`)
      lock.exclusive = hold
    } else if (held.mode === 'shared') {
      assert(lock.exclusive === undefined, `a shared hold of ${JSON.stringify(lock.name)} beside an exclusive one`)
      if (readers === undefined) lock.readers = { holds: new Set([hold]), generation: held.token }
      else readers.holds.add(hold)
    } else {
      assert(semaphore !== undefined, `a permit of ${JSON.stringify(lock.name)}, which is no semaphore`)
      const { slots } = semaphore
      const slot = held.slot as number
      assert(slots[slot] === undefined, `slot ${slot} of ${JSON.stringify(lock.name)} is granted twice`)
      while (slots.length <= slot) slots.push(undefined)
      slots[slot] = hold
      semaphore.taken++
      semaphore.busy.occupy(slot)
    }
  }
  machine.hashHold(hold).endUpdate()
  machine.hashOwner(hold).endUpdate()
}

export function withoutSecret(hold: Hold): Grant {
  return { hold: hold.id, locks: hold.held }
}

/** Removes a hold from the state and from its locks, which are served afterwards. */
export function removeHold(machine: Machine, hold: Hold): void {
  machine.hashHold(hold).beginUpdate()
  machine.hashOwner(hold).beginUpdate()
  machine.holds.delete(hold.id)
  hold.session?.holds.delete(hold)
  for (const held of hold.held) {
    const lock = machine.requireLock(held.name)
    const { semaphore, readers } = lock
    if (held.mode === 'exclusive') lock.exclusive = undefined
    else if (held.mode === 'shared') {
      readers?.holds.delete(hold)
      if (readers?.holds.size === 0) lock.readers = undefined
    } else if (semaphore !== undefined) {
      semaphore.slots[held.slot as number] = undefined
      semaphore.taken--
      semaphore.busy.free(held.slot as number)
    }
    machine.markDirty(lock)
  }
}

export interface EndOptions {
  readonly reason: EndReason
  /** Whether the hold's lock delay applies: not after a clean release. */
  readonly delay: boolean
  /** Whether the owner gets a change. */
  readonly notify: boolean
  readonly actor: string
  readonly text: string
}

/** Ends a hold: frees its locks or begins its lock delay, resolves its answer and notifies its owner. */
export function endHold(machine: Machine, hold: Hold, options: EndOptions): void {
  const { session, answer } = hold
  removeHold(machine, hold)
  const { held } = hold
  const { lockDelayMs } = hold.terms
  if (options.delay && lockDelayMs > 0) {
    const dueAt = deadlineAfter(machine.now, lockDelayMs)
    addDelay(machine, { held, dueAt, dueKind: DEADLINE_DELAY, dueId: hold.id, duePlace: -1 })
  }
  for (const { name } of held) {
    const lock = machine.requireLock(name)
    if (isIdle(lock)) machine.removeLock(lock)
  }
  if (session !== undefined && machine.sessions.has(session.id)) {
    if (answer !== undefined)
      resolveAnswer(machine, session, answer, { kind: 'ended', hold: hold.id, reason: options.reason })
    if (options.notify) {
      const { reason, text } = options
      machine.addChange(session, (number) => ({ kind: 'ended', number, hold: hold.id, reason, text }))
    } else if (hold.grantChange !== 0) machine.dropChange(session, hold.grantChange)
  }
  machine.events.push({
    kind: 'freed',
    hold: hold.id,
    locks: hold.held,
    reason: options.reason,
    actor: options.actor,
    text: options.text,
  })
}

export function addDelay(machine: Machine, delay: Delay): void {
  machine.delays.set(delay.dueId, delay)
  machine.deadlines.push(delay)
  for (const { name, slot } of delay.held) {
    const lock = machine.requireLock(name)
    lock.delays ??= new Set()
    lock.delays.add(delay)
    if (slot !== undefined) lock.semaphore?.busy.occupy(slot)
  }
  machine.hashDelay(delay).endUpdate()
}

/** Ends a lock delay and frees what it blocked. */
export function endDelay(machine: Machine, delay: Delay): void {
  machine.hashDelay(delay).beginUpdate()
  machine.delays.delete(delay.dueId)
  machine.deadlines.remove(delay)
  for (const { name, slot } of delay.held) {
    const lock = machine.requireLock(name)
    lock.delays?.delete(delay)
    if (slot !== undefined) lock.semaphore?.busy.free(slot)
    if (lock.delays?.size === 0) lock.delays = undefined
    machine.markDirty(lock)
    if (isIdle(lock)) machine.removeLock(lock)
  }
}

/** Moves a hold to another session under a new id; exclusive locks and permits get that id as their new token. */
export function adoptHold(machine: Machine, hold: Hold, session: Session, secret: string, answer: Answer): Hold {
  const id: HoldId = machine.draw()
  removeHold(machine, hold)
  const places = hold.held.map((one) => machine.requireLock(one.name))
  const held = hold.held.map((one) => (one.mode === 'shared' ? one : { ...one, token: id }))
  const terms = { ...hold.terms, secret }
  const moved: Hold = { ...hold, id, session, held, client: session.client, terms, answer, grantChange: 0 }
  answer.hold = moved
  const old = hold.session
  if (old !== undefined) {
    if (hold.answer !== undefined)
      resolveAnswer(machine, old, hold.answer, { kind: 'ended', hold: hold.id, reason: 'moved' })
    machine.addChange(old, (number) => ({ kind: 'ended', number, hold: hold.id, reason: 'moved', text: '' }))
  }
  addHold(machine, moved, places)
  machine.events.push({
    kind: 'freed',
    hold: hold.id,
    locks: hold.held,
    reason: 'moved',
    actor: session.client,
    text: '',
  })
  machine.events.push({ kind: 'held', grant: withoutSecret(moved), session: session.id, client: session.client })
  return moved
}
