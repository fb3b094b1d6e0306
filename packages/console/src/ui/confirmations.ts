import { span } from '../model/durations.js'
import type { HoldRow, LockRow, SessionRow } from '../model/table-rows.js'
import { intent } from '../state/commands.js'
import { shownNow } from '../state/health.js'

const CONSEQUENCE =
  'The holder is notified at once that its hold is lost, and the lock is granted to the next waiter. The current work of the holder does not stop by itself: only a guard that checks tokens rejects its late writes.'

/** Opens the confirmation dialog to steal one hold. */
export function confirmSteal(hold: HoldRow): void {
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

/** Opens the confirmation dialog to steal every hold of a lock. */
export function confirmStealAll(lock: LockRow): void {
  const [only] = lock.holds
  if (lock.holds.length === 1 && only !== undefined) return confirmSteal(only)
  intent.value = {
    title: `Steal all ${lock.holds.length} holds?`,
    subject: lock.name,
    facts: [['holders', [...new Set(lock.holds.map((hold) => hold.client || 'unnamed'))].slice(0, 8).join(', ')]],
    consequence: CONSEQUENCE,
    action: 'Steal all holds',
    done: `Stolen: all holds of ${lock.name}.`,
    path: '/v1/steal',
    body: { name: lock.name },
  }
}

/** Opens the confirmation dialog to end a session as an operator. */
export function confirmEndSession(session: SessionRow): void {
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
