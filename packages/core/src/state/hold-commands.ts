import type { Adopt, Cancel, Release, Result, Steal } from '../operations.js'
import { REQUEST_WINDOW } from '../limits.js'
import { sessionLimit } from './grants.js'
import { adoptHold, endHold, grantOf } from './hold-table.js'
import type { Machine } from './machine.js'
import { newAnswer, refused, type Session } from './elements.js'
import { resolveAnswer } from './answers.js'
import { noSession, deduplicate } from './deduplication.js'
import { textProblem } from './sessions.js'
import { removeWaiter } from './waiters.js'

const HEX128 = /^[0-9a-f]{32}$/

/**
 * Releases a hold. This takes the session that owns it, or the hold's secret; anything else is refused as `not-holder` and
 * changes nothing.
 */
export function release(machine: Machine, command: Release): Result {
  const { session, request, ack } = command
  if (session === undefined) return releaseNow(machine, command)
  if (request === undefined) {
    return machine.sessions.has(session) ? releaseNow(machine, command) : noSession(session)
  }
  return deduplicate(machine, { session, request, ack: ack ?? { lowest: 1, also: [] } }, 'full', () =>
    releaseNow(machine, command),
  )
}

function releaseNow(machine: Machine, command: Release): Result {
  const hold = machine.holds.get(command.hold)
  if (hold === undefined) return refused('not-holder', `hold ${command.hold} does not exist (any more)`)
  const owns = hold.session !== undefined && hold.session.id === command.session
  const { secret } = hold.terms
  const knows = secret !== undefined && secret === command.secret
  if (!owns && !knows) return refused('not-holder', `hold ${command.hold} belongs to somebody else`)
  endHold(machine, hold, { reason: 'released', delay: false, notify: !owns, actor: '', text: '' })
  return { kind: 'released' }
}

/** Undoes an acquire that is queued, granted or has not arrived yet. */
export function cancel(machine: Machine, command: Cancel): Result {
  return deduplicate(machine, command, 'full', (session) => cancelNow(machine, session, command))
}

function cancelNow(machine: Machine, session: Session, { request, target }: Cancel): Result {
  if (!Number.isSafeInteger(target) || target < 1 || target === request) {
    return refused('invalid', `request ${target} cannot be cancelled by request ${request}`)
  }
  if (target < session.lowest || session.acknowledged.has(target)) {
    return refused('expired-request', `request ${target} was answered and acknowledged before`)
  }
  if (target > session.lowest + REQUEST_WINDOW) {
    return refused('invalid', `request ${target} is beyond the window of ${REQUEST_WINDOW} from ${session.lowest}`)
  }
  const aborted = refused('aborted', `cancelled by request ${request}`)
  const answer = session.answers.get(target)
  if (answer === undefined) {
    const late = newAnswer(target)
    late.result = aborted
    machine.hashAnswer(session, late).endUpdate()
    session.answers.set(target, late)
    return { kind: 'cancelled', was: 'unknown' }
  }
  if (answer.waiter !== undefined) {
    removeWaiter(machine, answer.waiter, aborted, 'cancelled')
    return { kind: 'cancelled', was: 'queued' }
  }
  if (answer.hold !== undefined) {
    endHold(machine, answer.hold, { reason: 'released', delay: false, notify: false, actor: '', text: '' })
    resolveAnswer(machine, session, answer, aborted)
    return { kind: 'cancelled', was: 'granted' }
  }
  return { kind: 'cancelled', was: 'ended' }
}

/** Moves a portable or persistent hold to the session. */
export function adopt(machine: Machine, command: Adopt): Result {
  return deduplicate(machine, command, 'half', (session) => adoptNow(machine, session, command))
}

function adoptNow(machine: Machine, session: Session, command: Adopt): Result {
  const hold = machine.holds.get(command.hold)
  if (hold === undefined || hold.terms.secret === undefined || hold.terms.secret !== command.secret) {
    return refused('not-holder', `hold ${command.hold} does not exist (any more), or the secret is wrong`)
  }
  if (!HEX128.test(command.newSecret)) return refused('invalid', 'a secret is 32 hex digits')
  const full = sessionLimit(machine, session)
  if (full !== undefined) return full
  const answer = newAnswer(command.request)
  const moved = adoptHold(machine, hold, session, command.newSecret, answer)
  machine.hashAnswer(session, answer).endUpdate()
  session.answers.set(command.request, answer)
  return { kind: 'granted', grant: grantOf(moved) }
}

/** Ends a hold without its owner's consent; its lock delay applies. */
export function steal(machine: Machine, command: Steal): Result {
  const problem = textProblem(command.actor, 'an actor') ?? textProblem(command.reason, 'a reason')
  if (problem !== undefined) return problem
  const hold = machine.holds.get(command.hold)
  if (hold === undefined) return refused('not-holder', `hold ${command.hold} does not exist (any more)`)
  endHold(machine, hold, { reason: 'stolen', delay: true, notify: true, actor: command.actor, text: command.reason })
  return { kind: 'stolen' }
}
