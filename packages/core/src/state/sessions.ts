import type { Millis } from '../brand.js'
import { CompactingMap, CompactingSet } from '../compacting-map.js'
import { TEXT_BYTES_MAX } from '../limits.js'
import { utf8Length } from '../names.js'
import type { CloseSession, EndReason, OpenSession, Refused, Renew, Result } from '../operations.js'
import { DEADLINE_SESSION, deadlineAfter } from './deadlines.js'
import { endHold } from './hold-table.js'
import type { Machine } from './machine.js'
import { refused, type Session } from './elements.js'
import { acknowledge, ackProblem, noSession } from './deduplication.js'
import { leaveQueues } from './waiters.js'

const HEX128 = /^[0-9a-f]{32}$/

export function openSession(machine: Machine, command: OpenSession): Result {
  const known = machine.nonces.get(command.nonce)
  if (known !== undefined) return opened(known)
  const { limits } = machine
  const { ttlMs } = command
  if (!HEX128.test(command.nonce) || !HEX128.test(command.secret)) {
    return refused('invalid', 'a nonce and a secret are 32 hex digits')
  }
  if (!Number.isSafeInteger(ttlMs) || ttlMs < limits.ttlMinMs || ttlMs > limits.ttlMaxMs) {
    return refused('invalid', `a TTL is ${limits.ttlMinMs} to ${limits.ttlMaxMs} ms, not ${ttlMs}`)
  }
  const problem = textProblem(command.client, "a client's name")
  if (problem !== undefined) return problem
  if (machine.sessions.size >= limits.sessions) {
    return refused('limit', `the service has ${limits.sessions} sessions, and no room for more`)
  }
  if (!machine.canDraw) return refused('limit', `the counter of epoch ${machine.epoch} is full`)
  const id = machine.draw()
  const session: Session = {
    id,
    nonce: command.nonce,
    secret: command.secret,
    ttlMs,
    client: command.client,
    local: command.local,
    expiresAt: deadlineAfter(machine.now, ttlMs),
    lowest: 1,
    acknowledged: new CompactingSet(),
    answers: new CompactingMap(),
    holds: new CompactingSet(),
    waiters: new CompactingSet(),
    changeNumber: 0,
    changes: new CompactingMap(),
    dueAt: deadlineAfter(machine.now, ttlMs),
    dueKind: DEADLINE_SESSION,
    dueId: id,
    duePlace: -1,
  }
  addSession(machine, session)
  machine.events.push({ kind: 'sessionOpened', session: id, client: session.client })
  return opened(session)
}

function opened(session: Session): Result {
  return { kind: 'opened', session: session.id, secret: session.secret, ttlMs: session.ttlMs as Millis }
}

export function addSession(machine: Machine, session: Session): void {
  machine.sessions.set(session.id, session)
  machine.nonces.set(session.nonce, session)
  machine.deadlines.push(session)
  machine.hashSession(session).endUpdate()
  machine.hashLease(session).endUpdate()
}

/** Why text is refused: it is not valid Unicode, or longer than 256 bytes. */
export function textProblem(text: string, what: string): Refused | undefined {
  const bytes = utf8Length(text)
  if (bytes < 0) return refused('invalid', `${what} is valid Unicode, without lone surrogates`)
  if (bytes > TEXT_BYTES_MAX) return refused('invalid', `${what} has at most ${TEXT_BYTES_MAX} bytes, not ${bytes}`)
  return undefined
}

/** Extends the session to a full TTL from now, and answers with all unseen changes. A refused renewal changes nothing. */
export function renew(machine: Machine, command: Renew): Result {
  const session = machine.sessions.get(command.session)
  if (session === undefined) return noSession(command.session)
  const { ack, seen } = command
  const problem = ack === undefined ? undefined : ackProblem(session, ack)
  if (problem !== undefined) return refused('invalid', problem)
  if (seen !== undefined && seen > session.changeNumber) {
    return refused('invalid', `change ${seen} cannot have been seen: the last one is ${session.changeNumber}`)
  }
  if (ack !== undefined) acknowledge(machine, session, ack)
  machine.hashLease(session).beginUpdate()
  session.expiresAt = deadlineAfter(machine.now, session.ttlMs)
  machine.hashLease(session).endUpdate()
  if (seen !== undefined && session.changes.size > 0) {
    for (const number of [...session.changes.keys()]) {
      if (number > seen) break
      machine.dropChange(session, number)
    }
  }
  return { kind: 'renewed', changes: session.changes.size === 0 ? NO_CHANGES : [...session.changes.values()] }
}

const NO_CHANGES: readonly never[] = []

export function closeSession(machine: Machine, command: CloseSession): Result {
  const session = machine.sessions.get(command.session)
  if (session === undefined) return noSession(command.session)
  const problem = textProblem(command.reason, 'a reason')
  if (problem !== undefined) return problem
  endSession(machine, session, command.by === 'owner' ? 'closed' : command.by, command.reason)
  return { kind: 'closed' }
}

/**
 * Ends a session: its waiters leave their queues, its holds end, and its answers are discarded. Persistent holds whose grant was
 * acknowledged remain without a session. After a clean close, no lock delay applies.
 */
export function endSession(machine: Machine, session: Session, reason: EndReason, text = ''): void {
  machine.hashSession(session).beginUpdate()
  machine.hashLease(session).beginUpdate()
  for (const request of session.acknowledged) machine.hashAcknowledged(session, request).beginUpdate()
  for (const answer of session.answers.values()) machine.hashAnswer(session, answer).beginUpdate()
  for (const change of session.changes.values()) machine.hashChange(session, change).beginUpdate()
  machine.sessions.delete(session.id)
  machine.nonces.delete(session.nonce)
  machine.deadlines.remove(session)
  for (const waiter of [...session.waiters]) {
    leaveQueues(machine, waiter)
    machine.events.push({
      kind: 'unqueued',
      session: session.id,
      request: waiter.acquire.request,
      names: waiter.acquire.locks.map((lock) => lock.name),
      reason: 'session-ended',
    })
  }
  for (const hold of [...session.holds]) {
    if (hold.terms.confirmed) {
      machine.hashOwner(hold).beginUpdate()
      hold.session = undefined
      hold.answer = undefined
      hold.grantChange = 0
      machine.hashOwner(hold).endUpdate()
    } else endHold(machine, hold, { reason, delay: reason !== 'closed', notify: false, actor: '', text })
  }
  machine.pushes.push({ session: session.id, ended: reason })
  machine.events.push({ kind: 'sessionEnded', session: session.id, reason })
}
