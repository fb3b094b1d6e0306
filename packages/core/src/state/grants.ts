import type { Serial } from '../brand.js'
import { CHANGES_MAX, PERMITS_MAX } from '../limits.js'
import { nameProblem } from '../names.js'
import {
  type Acquire,
  type HeldLock,
  type LockRequest,
  type Refused,
  type Result,
  WAIT_FOREVER,
} from '../operations.js'
import { assert } from '../assert.js'
import { Heap } from '../heap.js'
import { DEADLINE_WAIT, deadlineAfter } from './deadlines.js'
import { addHold, grantOf, withoutSecret } from './hold-table.js'
import type { Machine } from './machine.js'
import {
  type Answer,
  type Delay,
  type Hold,
  type Lock,
  newAnswer,
  permitsOf,
  refused,
  type Session,
  termsOf,
  type Waiter,
} from './elements.js'
import { Queue } from './queue.js'
import { leaveQueues } from './waiters.js'

/** Executes a new acquire: grants it, queues it or refuses it. */
export function acquire(machine: Machine, session: Session, command: Acquire): Result {
  const problem = acquireProblem(machine, command) ?? acquireLimit(machine, session)
  if (problem !== undefined) return problem
  let blocker: Lock | undefined
  for (const request of command.locks) {
    const lock = machine.locks.get(request.name)
    if (lock === undefined) continue
    if (lock.permits !== permitsOf(request)) return mismatch(lock, request)
    if (blocker === undefined && (waits(lock) || !isFree(lock, request))) blocker = lock
  }
  if (blocker === undefined) {
    const places = command.locks.map((request) => machine.ensureLock(request.name, permitsOf(request)))
    const answer = newAnswer(command.request)
    const hold = grant(machine, session, command, places, answer)
    machine.hashAnswer(session, answer).endUpdate()
    session.answers.set(command.request, answer)
    return { kind: 'granted', grant: grantOf(hold) }
  }
  if (command.waitMs === 0) return refused('busy', busyText(blocker))
  return enqueue(machine, session, command)
}

function acquireProblem(machine: Machine, command: Acquire): Refused | undefined {
  const { limits } = machine
  const { locks, waitMs } = command
  if (locks.length === 0) return refused('invalid', 'an acquire names at least one lock')
  if (locks.length > limits.locksPerAcquire) {
    return refused('limit', `an acquire names at most ${limits.locksPerAcquire} locks, not ${locks.length}`)
  }
  const names = new Set<string>()
  for (const { name, mode } of locks) {
    const problem = nameProblem(name)
    if (problem !== undefined) return refused('invalid', problem)
    if (names.has(name)) return refused('invalid', `the lock ${JSON.stringify(name)} is named twice`)
    names.add(name)
    if (typeof mode !== 'object') continue
    if (!Number.isSafeInteger(mode.permits) || mode.permits < 1 || mode.permits > PERMITS_MAX) {
      return refused('invalid', `a semaphore has 1 to ${PERMITS_MAX} permits, not ${mode.permits}`)
    }
  }
  if (waitMs !== WAIT_FOREVER && (!Number.isSafeInteger(waitMs) || waitMs < 0)) {
    return refused('invalid', `a wait is whole milliseconds, not ${waitMs}`)
  }
  if (
    !Number.isSafeInteger(command.lockDelayMs) ||
    command.lockDelayMs < 0 ||
    command.lockDelayMs > limits.lockDelayMaxMs
  ) {
    return refused('invalid', `a lock delay is 0 to ${limits.lockDelayMaxMs} ms, not ${command.lockDelayMs}`)
  }
  if (command.data.length > limits.dataBytes) {
    return refused('limit', `owner data has at most ${limits.dataBytes} bytes, not ${command.data.length}`)
  }
  if ((command.persistent || command.portable) && command.secret === undefined) {
    return refused('invalid', 'a persistent or portable acquire needs a secret')
  }
  return undefined
}

function acquireLimit(machine: Machine, session: Session): Refused | undefined {
  const { limits } = machine
  if (machine.holds.size + machine.waiters.size >= limits.holds) {
    return refused('limit', `the service has ${limits.holds} holds and waiters, and no room for more`)
  }
  return sessionLimit(machine, session)
}

/** Why the session may get no more holds; undefined if it may. */
export function sessionLimit(machine: Machine, session: Session): Refused | undefined {
  const { limits } = machine
  if (session.holds.size + session.waiters.size >= limits.holdsPerSession) {
    return refused('limit', `the session has ${limits.holdsPerSession} holds and waiters, and no room for more`)
  }
  if (session.changes.size >= CHANGES_MAX) {
    return refused(
      'limit',
      `${session.changes.size} changes were not seen by this session`,
      'renew it, with what it has seen',
    )
  }
  if (!machine.canDraw) return refused('limit', `the counter of epoch ${machine.epoch} is full`)
  return undefined
}

function mismatch(lock: Lock, request: LockRequest): Refused {
  const is = lock.permits === 0 ? 'a lock without permits' : `a semaphore of ${lock.permits}`
  const asked = permitsOf(request)
  const wanted = asked === 0 ? 'a lock without permits' : `a semaphore of ${asked}`
  return refused('mismatch', `${JSON.stringify(lock.name)} is ${is}, and was asked for as ${wanted}`)
}

function waits(lock: Lock): boolean {
  return lock.queue !== undefined && lock.queue.length > 0
}

/** Whether the holds and delays of the lock admit this mode. Earlier waiters are not considered. */
export function isFree(lock: Lock, request: LockRequest): boolean {
  if (lock.permits > 0) return lowestFreeSlot(lock) !== undefined
  if (lock.exclusive !== undefined) return false
  const exclusive = request.mode === 'exclusive'
  if (exclusive && lock.readers !== undefined) return false
  if (lock.delays === undefined) return true
  // The delays are all of shared holds, which block exclusive ones only, or there is one delay of an exclusive hold.
  const [delay] = lock.delays
  return !exclusive && (delay === undefined || heldOf(delay, lock).mode !== 'exclusive')
}

function heldOf(delay: Delay, lock: Lock): HeldLock {
  const held = delay.held.find((one) => one.name === lock.name)
  assert(held !== undefined, `${JSON.stringify(lock.name)} is not among the locks of its delay ${delay.dueId}`)
  return held
}

function lowestFreeSlot({ semaphore }: Lock): number | undefined {
  if (semaphore === undefined || semaphore.busy.count >= semaphore.size) return undefined
  return semaphore.busy.lowestFree()
}

function anyHolder({ exclusive, readers, semaphore }: Lock): Hold | undefined {
  return exclusive ?? readers?.holds.values().next().value ?? semaphore?.slots.find((hold) => hold !== undefined)
}

function busyText(lock: Lock): string {
  const name = JSON.stringify(lock.name)
  const holder = anyHolder(lock)
  const front = lock.queue?.front?.waiter
  if (holder !== undefined) return `${name} is held by hold ${holder.id}${named(holder.client)}`
  if (front !== undefined) return `${name} waits for session ${front.session.id}${named(front.session.client)}`
  return `${name} is blocked by a lock delay`
}

function named(client: string): string {
  return client === '' ? '' : ` (${client})`
}

function enqueue(machine: Machine, session: Session, command: Acquire): Result {
  for (const { name } of command.locks) {
    const length = machine.locks.get(name)?.queue?.length ?? 0
    if (length >= machine.limits.waitersPerLock) {
      return refused('limit', `${JSON.stringify(name)} has ${length} waiters, and no room for more`)
    }
  }
  const answer = newAnswer(command.request)
  const places = command.locks.map((request) => machine.ensureLock(request.name, permitsOf(request)))
  const waiter: Waiter = {
    arrival: ++machine.arrivals,
    session,
    acquire: command,
    queuedAt: machine.now,
    places,
    nodes: [],
    answer,
    dueAt: command.waitMs === WAIT_FOREVER ? -1 : deadlineAfter(machine.now, command.waitMs),
    dueKind: DEADLINE_WAIT,
    dueId: machine.arrivals,
    duePlace: -1,
  }
  joinQueues(machine, waiter)
  answer.waiter = waiter
  machine.hashAnswer(session, answer).endUpdate()
  session.answers.set(command.request, answer)
  machine.events.push({
    kind: 'queued',
    session: session.id,
    request: command.request,
    names: command.locks.map((lock) => lock.name),
  })
  let position = 1
  for (const lock of places) position = Math.max(position, lock.queue?.length ?? 1)
  return { kind: 'queued', position }
}

export function joinQueues(machine: Machine, waiter: Waiter): void {
  for (const lock of waiter.places) {
    lock.queue ??= new Queue()
    waiter.nodes.push(lock.queue.join(waiter))
  }
  machine.waiters.set(waiter.arrival, waiter)
  waiter.session.waiters.add(waiter)
  if (waiter.dueAt >= 0) machine.deadlines.push(waiter)
  machine.hashWaiter(waiter).endUpdate()
}

/** Grants the locks, which are free, to the session in one step. */
function grant(machine: Machine, session: Session, command: Acquire, places: readonly Lock[], answer: Answer): Hold {
  const id = machine.draw()
  const hold: Hold = {
    id,
    session,
    held: command.locks.map((request, i) => take(places[i] as Lock, request, id)),
    client: session.client,
    terms: termsOf(command, false),
    grantedAt: machine.now,
    answer,
    grantChange: 0,
  }
  answer.hold = hold
  addHold(machine, hold, places)
  machine.events.push({ kind: 'held', grant: withoutSecret(hold), session: session.id, client: session.client })
  return hold
}

/** The part of one lock in the hold `id`. */
function take(lock: Lock, { name, mode }: LockRequest, id: Serial): HeldLock {
  if (mode === 'exclusive') return { name, mode, token: id }
  if (mode === 'shared') {
    return { name, mode, token: lock.readers === undefined ? id : (lock.readers.generation as Serial) }
  }
  const slot = lowestFreeSlot(lock)
  assert(slot !== undefined, `${JSON.stringify(name)} has no free slot`)
  return { name, mode, token: id, slot }
}

/**
 * Serves the locks whose front or holds have changed, by arrival, until nothing changes. A waiter is granted when it is
 * at the front of each of its queues and every lock lets it in; a lock behind the front of several locks waits with it.
 */
export function serve(machine: Machine): void {
  if (machine.dirty.length === 0) return
  const fronts = new Heap<Waiter>(arrivedBefore)
  for (;;) {
    for (const lock of machine.dirty) {
      const front = lock.queue?.front?.waiter
      if (front !== undefined) fronts.push(front)
    }
    machine.dirty = []
    const first = fronts.pop()
    if (first === undefined) return
    // A waiter that cannot be served now is tried again when one of its locks changes.
    if (machine.waiters.has(first.arrival) && canBeServed(machine, first)) serveOne(machine, first)
  }
}

function arrivedBefore(a: Waiter, b: Waiter): boolean {
  return a.arrival < b.arrival
}

/** Whether a waiter can be granted. A session that is due to expire in this entry is granted nothing. */
function canBeServed(machine: Machine, waiter: Waiter): boolean {
  if (!machine.canDraw || waiter.session.expiresAt <= machine.now) return false
  return waiter.places.every(
    (lock, i) => lock.queue?.front === waiter.nodes[i] && isFree(lock, waiter.acquire.locks[i] as LockRequest),
  )
}

function serveOne(machine: Machine, waiter: Waiter): void {
  const { session, acquire: command, answer } = waiter
  assert(machine.sessions.has(session.id), `a waiter of session ${session.id}, which has ended`)
  leaveQueues(machine, waiter, true)
  machine.hashAnswer(session, answer).beginUpdate()
  const hold = grant(machine, session, command, waiter.places, answer)
  answer.waiter = undefined
  machine.hashAnswer(session, answer).endUpdate()
  machine.hashOwner(hold).beginUpdate()
  hold.grantChange = machine.addChange(session, (number) => ({
    kind: 'granted',
    number,
    request: command.request,
    grant: grantOf(hold),
  }))
  machine.hashOwner(hold).endUpdate()
}
