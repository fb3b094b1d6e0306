import { span } from '../model/durations.js'
import type { HoldRow, LockRow, SessionRow } from '../model/table-rows.js'
import { intent } from '../state/commands.js'
import { shownNow } from '../state/health.js'

const CONSEQUENCE =
  'The holder is told at once that its hold is lost, and the next in the queue gets the lock. What the holder is doing right now does not stop by itself: only a guard that checks tokens refuses its late writes.'

/** Asks whether to steal one hold. */
export function stealHold(hold: HoldRow): void {
  intent.value = {
    title: 'Steal this hold?',
    subject: hold.names.join(', '),
    facts: [
      ['holder', hold.client || `session ${hold.session ?? 'none: it is persistent'}`],
      ['token', hold.lock.token],
      ['held for', span(shownNow.value - hold.since)],
    ],
    consequence: CONSEQUENCE,
    action: 'Steal the hold',
    done: `Stolen: ${hold.names.join(', ')} from ${hold.client || 'its holder'}.`,
    path: '/v1/steal',
    body: { hold: hold.hold },
  }
}

/** Asks whether to steal every hold of a lock. */
export function stealAll(lock: LockRow): void {
  const [only] = lock.holds
  if (lock.holds.length === 1 && only !== undefined) return stealHold(only)
  intent.value = {
    title: `Steal all ${lock.holds.length} holds?`,
    subject: lock.name,
    facts: [['holders', [...new Set(lock.holds.map((hold) => hold.client || 'unnamed'))].slice(0, 8).join(', ')]],
    consequence: CONSEQUENCE,
    action: 'Steal them all',
    done: `Stolen: all holds of ${lock.name}.`,
    path: '/v1/steal',
    body: { name: lock.name },
  }
}

/** Asks whether to end a session, as an operator. */
export function endSession(session: SessionRow): void {
  intent.value = {
    title: 'End this session?',
    subject: session.client || `session ${session.session}`,
    facts: [
      ['session', session.session],
      ['holds', String(session.holds)],
      ['waits for', String(session.waiters)],
    ],
    consequence: `All its holds are lost and its waiters leave their queues. ${CONSEQUENCE}`,
    action: 'End the session',
    done: `Ended: session ${session.session}.`,
    path: '/v1/sessions/end',
    body: { session: session.session },
  }
}
