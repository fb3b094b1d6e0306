import type { Event, Refused } from '../operations.js'
import type { Machine } from './machine.js'
import { type Answer, isIdle, type Waiter } from './elements.js'
import { resolveAnswer } from './answers.js'

/**
 * Removes a waiter from all its queues; its locks are served afterwards. The caller resolves the answer. With `keep`, locks that
 * are idle now remain: they are about to be granted.
 */
export function leaveQueues(machine: Machine, waiter: Waiter, keep = false): void {
  waiter.places.forEach((lock, i) => {
    const node = waiter.nodes[i]
    if (node === undefined || lock.queue === undefined) return
    lock.queue.leave(node)
    machine.markDirty(lock)
    if (!keep && isIdle(lock)) machine.removeLock(lock)
  })
  waiter.nodes = []
  machine.hashWaiter(waiter).beginUpdate()
  machine.waiters.delete(waiter.arrival)
  machine.deadlines.remove(waiter)
  waiter.session.waiters.delete(waiter)
}

/** Ends a wait without a grant, and keeps `result` as the answer of the acquire. */
export function removeWaiter(
  machine: Machine,
  waiter: Waiter,
  result: Refused,
  reason: (Event & { kind: 'unqueued' })['reason'],
): void {
  leaveQueues(machine, waiter)
  const answer: Answer = waiter.answer
  resolveAnswer(machine, waiter.session, answer, result)
  machine.events.push({
    kind: 'unqueued',
    session: waiter.session.id,
    request: waiter.acquire.request,
    names: waiter.acquire.locks.map((lock) => lock.name),
    reason,
  })
}
