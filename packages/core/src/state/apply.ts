import type { Index } from '../brand.js'
import type { Applied, Command, Entry, Result } from '../operations.js'
import { assert } from '../assert.js'
import { configure } from './configure.js'
import { DEADLINE_DELAY, DEADLINE_SESSION, TIME_MAX } from './deadlines.js'
import { acquire, serve } from './grants.js'
import { endDelay } from './hold-table.js'
import { adopt, cancel, release, steal } from './hold-commands.js'
import type { Machine } from './machine.js'
import { type Delay, refused, type Session, type Waiter } from './elements.js'
import { deduplicate } from './deduplication.js'
import { writeRegister } from './registers.js'
import { closeSession, endSession, openSession, renew } from './sessions.js'
import { removeWaiter } from './waiters.js'

/**
 * Applies one entry, always in this order: cluster time advances; renewals; expiries, by (time, kind, id); the other commands.
 * After each step, the queues whose front or holds have changed are served.
 */
export function apply(machine: Machine, entry: Entry, index: Index): Applied {
  assert(index > machine.index, `entry ${index} applied after ${machine.index}`)
  machine.index = index
  machine.pushes = []
  machine.events = []
  if (entry.at > machine.now) machine.now = Math.min(entry.at, TIME_MAX)
  const { commands } = entry
  const results: Result[] = new Array(commands.length)
  for (let i = 0; i < commands.length; i++) {
    const command = commands[i] as Command
    if (command.kind === 'renew') results[i] = renew(machine, command)
  }
  serve(machine)
  expireDue(machine)
  for (let i = 0; i < commands.length; i++) {
    const command = commands[i] as Command
    if (command.kind === 'renew') continue
    results[i] = applyCommand(machine, command)
    serve(machine)
  }
  return { results, pushes: machine.pushes, events: machine.events }
}

function applyCommand(machine: Machine, command: Exclude<Command, { kind: 'renew' }>): Result {
  switch (command.kind) {
    case 'openSession':
      return openSession(machine, command)
    case 'closeSession':
      return closeSession(machine, command)
    case 'acquire':
      return deduplicate(machine, command, 'half', (session) => acquire(machine, session, command))
    case 'cancel':
      return cancel(machine, command)
    case 'release':
      return release(machine, command)
    case 'adopt':
      return adopt(machine, command)
    case 'steal':
      return steal(machine, command)
    case 'put':
    case 'delete':
      return writeRegister(machine, command)
    case 'configure':
      return configure(machine, command)
  }
}

/** Expires the sessions, waits and lock delays whose deadline has come. */
function expireDue(machine: Machine): void {
  for (;;) {
    const item = nextDeadline(machine)
    if (item === undefined || item.dueAt > machine.now) return
    if (item.dueKind === DEADLINE_SESSION) endSession(machine, item as Session, 'expired')
    else if (item.dueKind === DEADLINE_DELAY) endDelay(machine, item as Delay)
    else timeOut(machine, item as Waiter)
    serve(machine)
  }
}

/** Returns the element with the next deadline. A session's heap entry lags behind its renewals, and is moved here. */
export function nextDeadline(machine: Machine): Session | Waiter | Delay | undefined {
  for (;;) {
    const item = machine.deadlines.peek() as Session | Waiter | Delay | undefined
    if (item === undefined || item.dueKind !== DEADLINE_SESSION) return item
    const session = item as Session
    if (session.expiresAt === session.dueAt) return session
    session.dueAt = session.expiresAt
    machine.deadlines.update(session)
  }
}

function timeOut(machine: Machine, waiter: Waiter): void {
  const { session, acquire: command } = waiter
  const result = refused('timeout', `not granted within ${command.waitMs} ms`)
  removeWaiter(machine, waiter, result, 'timeout')
  machine.addChange(session, (number) => ({ kind: 'refused', number, request: command.request, refused: result }))
}
