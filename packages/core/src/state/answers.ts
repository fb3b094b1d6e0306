import type { Result } from '../operations.js'
import type { Answer, Session } from './elements.js'
import type { Machine } from './machine.js'

/** Replaces the answer of an acquire that waited or held by its final result. */
export function resolveAnswer(machine: Machine, session: Session, answer: Answer, result: Result): void {
  machine.hashAnswer(session, answer).beginUpdate()
  answer.waiter = undefined
  answer.hold = undefined
  answer.result = result
  machine.hashAnswer(session, answer).endUpdate()
}
