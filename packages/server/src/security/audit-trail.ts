import { type Event, type LockState, type SessionId, tokenOf } from '@leasehold/core'
import type { AppliedBatch, Member } from '@leasehold/replica'
import type { AuditLog, AuditRecord } from './audit-log.js'
import type { ClientQuotas } from './client-quotas.js'

/**
 * Audits what took effect: grants, ends, sessions and writes, as the leader applies them. Followers apply the same events
 * and write nothing. Around a leader change the same record may be in the files of two members; its `index` is equal.
 * Returns a function that stops it.
 */
export function auditAppliedEvents(audit: AuditLog, member: Member<LockState>, quotas: ClientQuotas): () => void {
  return member.onApplied(({ index, events }: AppliedBatch) => {
    if (events.length === 0 || member.status.role !== 'leader') return
    const { epoch } = member.status
    for (const event of events) {
      const record = recordOf(event, epoch, quotas)
      if (record !== undefined) audit.write({ ...record, index })
    }
  })
}

function recordOf(event: Event, epoch: number, quotas: ClientQuotas): AuditRecord | undefined {
  const text = (serial: number): string => tokenOf(epoch, serial as never).toString()
  const session = (id: SessionId): Pick<AuditRecord, 'session' | 'principal' | 'remote'> => {
    const owner = quotas.ownerOf(id)
    return { session: text(id), ...(owner === undefined ? {} : owner) }
  }
  switch (event.kind) {
    case 'held': {
      const { hold, locks } = event.grant
      const tokens = locks.map((lock) => text(lock.token))
      const what = { hold: text(hold), names: locks.map((lock) => lock.name), tokens }
      return { event: 'acquired', ...what, client: event.client, ...session(event.session) }
    }
    case 'freed': {
      const what = { hold: text(event.hold), names: event.locks.map((lock) => lock.name) }
      if (event.reason === 'released') return { event: 'released', ...what }
      if (event.reason === 'stolen') return { event: 'stolen', ...what, actor: event.actor, why: event.text }
      return { event: 'ended', ...what, reason: event.reason }
    }
    case 'sessionOpened':
      return { event: 'session-opened', client: event.client, ...session(event.session) }
    case 'sessionEnded':
      return { event: 'session-ended', reason: event.reason, ...session(event.session) }
    case 'put':
      return { event: 'written', names: [event.key] }
    case 'deleted':
      return { event: 'deleted', names: [event.key] }
    case 'queued':
    case 'unqueued':
      return undefined
  }
}
