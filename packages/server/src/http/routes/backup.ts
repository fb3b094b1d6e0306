import { LimitError } from '@leasehold/core'
import type { StateExport } from '@leasehold/replica'
import { backupBytes, backupHeader, type BackupHeader, backupPieces } from '@leasehold/replica/node'
import { BACKUPS_MAX } from '../../limits.js'
import { type Route, route } from '../route.js'
import { backupQuery } from '../request-schemas.js'
import type { Services } from '../services.js'

export const backupRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/backup',
    summary:
      'Download a backup file of the whole state at one linearizable point or, with stale, as this member has applied it.',
    produces: 'application/octet-stream',
    query: backupQuery,
    async handle({ services, query, authorize, audit }) {
      authorize('admin', [''])
      audit({ event: 'admin', verb: 'backup' })
      const { header, pieces } = await begin(services, query.stale ?? false)
      return new Response(pieces, {
        status: 200,
        headers: {
          'content-type': 'application/octet-stream',
          'content-length': String(backupBytes(header)),
          'leasehold-index': String(header.index),
        },
      })
    },
  }),
]

/**
 * Copies the state and streams it. The backup counts as in progress until its last piece is sent, or its client
 * disconnects.
 * @throws LimitError
 */
async function begin(
  services: Services,
  stale: boolean,
): Promise<{ header: BackupHeader; pieces: ReadableStream<Uint8Array> }> {
  const { backups } = services
  if (backups.inProgress >= BACKUPS_MAX) {
    throw new LimitError(`${backups.inProgress} backups are already in progress`, {
      hint: 'retry when one has finished',
    })
  }
  backups.inProgress++
  let ended = false
  const end = (): void => {
    if (!ended) backups.inProgress--
    ended = true
  }
  try {
    const copy = await services.replica.exportState(stale)
    const header = headerOf(services, copy, stale)
    const source = backupPieces(header, copy)
    const pieces = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const next = source.next()
          if (next.done !== true) return controller.enqueue(next.value)
          end()
          controller.close()
        },
        cancel: end,
      },
      { highWaterMark: 1 },
    )
    return { header, pieces }
  } catch (error) {
    end()
    throw error
  }
}

function headerOf({ replica, cluster }: Services, copy: StateExport, stale: boolean): BackupHeader {
  const { cluster: id, term, member } = replica.member.status
  return backupHeader(copy, {
    cluster: id,
    term,
    member,
    read: stale ? 'stale' : 'linearizable',
    takenAt: new Date().toISOString(),
    members: cluster?.members.map(({ name, role }) => ({ name, role })) ?? [{ name: member, role: 'voter' }],
  })
}
