import { holdsOfLock, NotHolderError, splitToken } from '@leasehold/core'
import { namesOfHold } from '../../state-queries.js'
import { otherEpoch, parseHoldHandle, parseSessionHandle } from '../handles.js'
import { HoldService } from '../hold-service.js'
import { releaseResponse, renewResponse, stealResponse } from '../response-schemas.js'
import { json, type Route, route } from '../route.js'
import { noQuery, releaseBody, renewBody, stealBody } from '../request-schemas.js'
import { idText } from '../json-views.js'

export const holdRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/renew',
    summary: 'Renew a session, or the session of a hold. The lease starts when the request was sent.',
    response: renewResponse,
    query: noQuery,
    body: renewBody,
    async handle({ services, body, status, authorize }) {
      authorize('acquire', [], 'renewal')
      const { sessions } = services
      if (body.hold !== undefined) {
        const handle = parseHoldHandle(body.hold, status.epoch)
        const expiresInMs = await new HoldService(sessions).renew(handle)
        return json(status, { id: idText(status.epoch, handle.hold), expiresInMs: expiresInMs ?? null })
      }
      const session = await sessions.use(parseSessionHandle(body.session as string, status.epoch))
      await sessions.renew(session)
      return json(status, {
        id: idText(status.epoch, session.id),
        expiresInMs: sessions.expiresInMs(session),
        ttlMs: session.ttlMs,
      })
    },
  }),
  route({
    method: 'POST',
    path: '/v1/release',
    summary: 'Release a hold. If its acquire opened the session, the session is closed too.',
    response: releaseResponse,
    query: noQuery,
    body: releaseBody,
    handleIsProof: true,
    async handle({ services, body, status }) {
      const handle = parseHoldHandle(body.hold, status.epoch)
      await new HoldService(services.sessions).release(handle)
      return json(status, { released: true, id: idText(status.epoch, handle.hold) })
    },
  }),
  route({
    method: 'POST',
    path: '/v1/steal',
    summary: 'Steal all holds of a lock, or one hold, from their owners.',
    response: stealResponse,
    query: noQuery,
    body: stealBody,
    async handle({ services, body, status, authorize }) {
      const { replica } = services
      const { name, hold, reason, actor } = body
      if (hold === undefined) authorize('steal', [name as string])
      let holds = [] as ReturnType<typeof holdsOfLock>
      if (hold !== undefined) {
        const { epoch, serial } = splitToken(hold)
        // A steal of one hold needs the permission for all of its locks; for an unknown hold, that for the whole service.
        const locks = namesOfHold(replica.member.stale().state, serial)
        authorize('steal', locks.length === 0 ? [''] : locks)
        if (epoch !== status.epoch) throw otherEpoch('this hold id', epoch, status.epoch)
        holds = [serial]
      } else holds = await replica.read(false, ({ state }) => holdsOfLock(state, name as string))
      if (holds.length === 0) throw new NotHolderError(`${JSON.stringify(name)} has no holder`)
      const ends = await Promise.allSettled(
        holds.map((one) => replica.submit({ kind: 'steal', hold: one, actor, reason }, 'stolen')),
      )
      const stolen = holds.filter((_, i) => ends[i]?.status === 'fulfilled')
      const failed = ends.find((end) => end.status === 'rejected')
      if (stolen.length === 0 && failed?.status === 'rejected') throw failed.reason
      services.log.info('holds were stolen', { name, holds: stolen.length, actor, reason })
      return json(status, { stolen: stolen.map((one) => idText(status.epoch, one)) })
    },
  }),
]
