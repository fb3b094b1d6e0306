import { REQUEST_WINDOW } from '../limits.js'
import type { Ack, Numbered, Refused, Result } from '../operations.js'
import { assert } from '../assert.js'
import { grantOf } from './hold-table.js'
import type { Machine } from './machine.js'
import { type Answer, newAnswer, refused, type Session } from './elements.js'
import { removeWaiter } from './waiters.js'

/*
 * Exactly-once requests. A session numbers its requests from 1. A number is unknown (no such request arrived), answered (the
 * answer is kept), or acknowledged (the client has the answer, and it is discarded here).
 *   unknown → answered: the request is executed, or refused.
 *   answered → answered: a repeat gets the kept answer. The answer of an acquire is its current state.
 *   answered → acknowledged: a later request of the session, or a renewal, acknowledges the answer.
 * An acknowledged number has no further effect, nor has one beyond the window.
 */

/** Discards acknowledged answers. The caller has checked {@link ackProblem}. */
export function acknowledge(machine: Machine, session: Session, ack: Ack): void {
  for (const request of ack.also) {
    if (request < session.lowest || session.acknowledged.has(request)) continue
    forgetAnswer(machine, session, request)
    machine.hashAcknowledged(session, request).endUpdate()
    session.acknowledged.add(request)
  }
  if (ack.lowest > session.lowest) raiseLowest(machine, session, ack.lowest)
}

/** Why an acknowledgement is invalid; undefined if it is valid. */
export function ackProblem(session: Session, ack: Ack): string | undefined {
  if (!Number.isSafeInteger(ack.lowest) || ack.lowest < 1) return `the lowest open request is ≥ 1, not ${ack.lowest}`
  if (ack.also.length > REQUEST_WINDOW) return `at most ${REQUEST_WINDOW} numbers may be acknowledged at once`
  const end = Math.max(ack.lowest, session.lowest) + REQUEST_WINDOW
  for (const request of ack.also) {
    if (!Number.isSafeInteger(request) || request < 1 || request > end) {
      return `request ${request} cannot be acknowledged: the window ends at ${end}`
    }
  }
  return undefined
}

function raiseLowest(machine: Machine, session: Session, lowest: number): void {
  machine.hashLease(session).beginUpdate()
  const from = session.lowest
  session.lowest = lowest
  machine.hashLease(session).endUpdate()
  if (lowest - from <= session.answers.size + session.acknowledged.size) {
    for (let request = from; request < lowest; request++) forgetNumber(machine, session, request)
    return
  }
  const numbers = [...session.answers.keys(), ...session.acknowledged]
  for (const request of numbers.sort((a, b) => a - b)) if (request < lowest) forgetNumber(machine, session, request)
}

function forgetNumber(machine: Machine, session: Session, request: number): void {
  if (session.acknowledged.has(request)) {
    machine.hashAcknowledged(session, request).beginUpdate()
    session.acknowledged.delete(request)
  } else forgetAnswer(machine, session, request)
}

/**
 * Discards an acknowledged answer. A persistent hold outlives its session from then on. An acquire that still waits leaves its
 * queues: a client that acknowledges it no longer expects a grant.
 */
function forgetAnswer(machine: Machine, session: Session, request: number): void {
  const answer = session.answers.get(request)
  if (answer === undefined) return
  if (answer.waiter !== undefined) {
    removeWaiter(machine, answer.waiter, refused('aborted', 'the client acknowledged a waiting request'), 'cancelled')
  }
  machine.hashAnswer(session, answer).beginUpdate()
  session.answers.delete(request)
  const hold = answer.hold
  if (hold === undefined) return
  machine.hashOwner(hold).beginUpdate()
  hold.answer = undefined
  if (hold.terms.persistent) hold.terms = { ...hold.terms, confirmed: true }
  if (hold.grantChange !== 0) {
    machine.dropChange(session, hold.grantChange)
    hold.grantChange = 0
  }
  machine.hashOwner(hold).endUpdate()
}

/** Why the request number is invalid together with the acknowledgement; undefined if it is valid. */
function numberProblem(session: Session, { request, ack }: Numbered): string | undefined {
  if (!Number.isSafeInteger(request) || request < 1) return `requests count from 1, not ${request}`
  if (ack.lowest > request) return `request ${request} acknowledges itself (lowest ${ack.lowest})`
  if (ack.also.includes(request)) return `request ${request} acknowledges itself`
  // The window begins at the lowest number that is open after this request's acknowledgement.
  const lowest = Math.max(session.lowest, ack.lowest)
  if (request > lowest + REQUEST_WINDOW)
    return `request ${request} is beyond the window of ${REQUEST_WINDOW} from ${lowest}`
  return undefined
}

/** The answer of a used number: the kept one, or a refusal if it was acknowledged. Undefined for a new number. */
function keptAnswer(session: Session, request: number): Result | undefined {
  if (request < session.lowest || session.acknowledged.has(request)) {
    return refused('expired-request', `request ${request} was answered and acknowledged before`)
  }
  const answer = session.answers.get(request)
  return answer === undefined ? undefined : currentAnswer(answer)
}

function windowFull(session: Session, request: number): Refused {
  return refused(
    'limit',
    `${request - session.lowest} requests are open in this session`,
    'wait for answers before sending more; the rest of the window is for releases and cancels',
  )
}

function currentAnswer(answer: Answer): Result {
  if (answer.waiter !== undefined) {
    let position = 1
    answer.waiter.places.forEach((lock, i) => {
      const node = answer.waiter?.nodes[i]
      if (lock.queue !== undefined && node !== undefined) position = Math.max(position, lock.queue.positionOf(node))
    })
    return { kind: 'queued', position }
  }
  if (answer.hold !== undefined) return { kind: 'granted', grant: grantOf(answer.hold) }
  assert(answer.result !== undefined, `answer ${answer.request} is empty`)
  return answer.result
}

/** Keeps the answer to a numbered request. */
export function remember(machine: Machine, session: Session, request: number, result: Result): void {
  assert(!session.answers.has(request), `request ${request} of session ${session.id} has an answer already`)
  const answer = newAnswer(request)
  answer.result = result
  machine.hashAnswer(session, answer).endUpdate()
  session.answers.set(request, answer)
}

/**
 * Executes a numbered command at most once: acknowledges, returns an earlier answer if there is one, else runs the command and
 * keeps its answer. The refusal for a full window is kept too: a late duplicate must not be executed when there is room again.
 */
export function deduplicate(
  machine: Machine,
  command: Numbered,
  windowUse: 'half' | 'full',
  run: (session: Session) => Result,
): Result {
  const session = machine.sessions.get(command.session)
  if (session === undefined) return noSession(command.session)
  const problem = numberProblem(session, command) ?? ackProblem(session, command.ack)
  if (problem !== undefined) return refused('invalid', problem)
  acknowledge(machine, session, command.ack)
  const { request } = command
  const known = keptAnswer(session, request)
  if (known !== undefined) return known
  const full = windowUse === 'half' && request >= session.lowest + REQUEST_WINDOW / 2
  const result = full ? windowFull(session, request) : run(session)
  if (!session.answers.has(request)) remember(machine, session, request, result)
  return result
}

export function noSession(session: number): Refused {
  return refused('session-ended', `session ${session} does not exist`, 'it has expired or was closed: open a new one')
}
