import { type EndReason, type LostReason, SessionEndedError } from '@leasehold/core'

/** Why a session ended: one of the service's reasons, or a restore of the service under another epoch. */
export type SessionEndReason = EndReason | 'epoch-changed'

/** How a hold ended without its owner. */
export interface LostEnd {
  readonly reason: LostReason
  readonly text: string
}

/**
 * Every reason for which the service ends a hold or a session: the reason of the owner's HoldLostError, and the text of its
 * message.
 */
const END_REASONS: Record<SessionEndReason, LostEnd> = {
  released: { reason: 'closed', text: 'it was released from elsewhere' },
  expired: { reason: 'expired', text: 'its session expired at the service' },
  closed: { reason: 'closed', text: 'its session was closed' },
  operator: { reason: 'closed', text: 'an operator ended its session' },
  death: { reason: 'expired', text: 'the process in which its session lived has died' },
  stolen: { reason: 'stolen', text: 'it was stolen' },
  moved: { reason: 'moved', text: 'it was handed over to another session' },
  'epoch-changed': { reason: 'epoch-changed', text: 'the service was restored from a backup' },
}

/** What the owner of a hold learns of an end at the service. `detail`: what the service added, such as the reason of a steal. */
export function lostEnd(end: SessionEndReason, detail = ''): LostEnd {
  const { reason, text } = END_REASONS[end]
  return { reason, text: detail === '' ? text : `${text}: ${detail}` }
}

/** The end that a service's `lost` error reports. A reason that only a client can have counts as an expiry. */
export function endReasonOf(lost: LostReason): EndReason {
  return lost === 'stolen' || lost === 'moved' || lost === 'closed' ? lost : 'expired'
}

/** The error of requests on a session that the service has ended. */
export function sessionEndedError(end: SessionEndReason, detail = ''): SessionEndedError {
  return new SessionEndedError(`the service ended the session (${detail === '' ? end : `${end}: ${detail}`})`)
}

/** The error of requests on a session after its `close`. */
export function sessionClosedError(): SessionEndedError {
  return new SessionEndedError('the session was closed by its owner')
}

/** The error of requests on a session that its owner no longer renews. */
export function sessionAbandonedError(): SessionEndedError {
  return new SessionEndedError('the session was abandoned: its local deadline has passed')
}
