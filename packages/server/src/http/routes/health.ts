import type { MemberStatus } from '@leasehold/replica'
import { READY_LAG_MAX } from '../../limits.js'
import type { Services } from '../services.js'

/** The reasons why the member must not receive requests now; empty when it is ready. */
export function unreadiness(status: MemberStatus, stopping: boolean, folder?: string): string[] {
  const reasons: string[] = []
  if (stopping) reasons.push('the server is stopping')
  if (status.failure !== undefined) reasons.push(`the member has stopped: ${status.failure}`)
  else if (status.role === 'stopped') reasons.push('the member has stopped')
  if (status.leader === '') reasons.push('no leader is known')
  const lag = status.commitIndex - status.appliedIndex
  if (lag > READY_LAG_MAX) reasons.push(`${lag} entries are committed but not applied yet`)
  if (status.disk !== 'ok') reasons.push('the disk is full')
  if (folder !== undefined) reasons.push(folder)
  return reasons
}

async function ready({ replica, stopping }: Services): Promise<Response> {
  const { member: checked } = replica
  const folder = await new Promise<string | undefined>((done) =>
    checked.checkFolder === undefined ? done(undefined) : checked.checkFolder(done),
  )
  const { status } = checked
  const reasons = unreadiness(status, stopping, folder)
  const { cluster, epoch, member, role, leader, disk } = status
  const body = { ready: reasons.length === 0, reasons, member, role, leader, disk, cluster, epoch }
  return Response.json(body, { status: reasons.length === 0 ? 200 : 503 })
}

export interface HealthRoute {
  readonly method: 'GET'
  readonly path: string
  readonly summary: string
  handle(services: Services): Response | Promise<Response>
}

export const healthRoutes: readonly HealthRoute[] = [
  {
    method: 'GET',
    path: '/healthz',
    summary: 'Report whether the process is alive.',
    handle: ({ replica }) => {
      const { cluster, epoch } = replica.member.status
      return Response.json({ ok: true, cluster, epoch })
    },
  },
  { method: 'GET', path: '/readyz', summary: 'Report whether the member can serve requests.', handle: ready },
]
