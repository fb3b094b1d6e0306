import { InvalidError, parseToken, SessionEndedError, splitToken } from '@leasehold/core'
import { formatSessionHandle, isHandle, parseSessionHandle } from '../handles.js'
import type { HttpSession } from '../http-session.js'
import { sessionResponse, sessionEndResponse, sessionsResponse } from '../response-schemas.js'
import { json, type Route, route } from '../route.js'
import { endSessionBody, noQuery, openSessionBody, sessionsQuery } from '../request-schemas.js'
import { idText, sessionJson } from '../json-views.js'
import { query } from './locks.js'

export const sessionRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Open a session. A retry with the same nonce returns the same session.',
    response: sessionResponse,
    query: noQuery,
    body: openSessionBody,
    async handle({ services, body, status, authorize, reserveSession, recordOwner }) {
      authorize('acquire', [])
      const answered = reserveSession()
      const { ttl: ttlMs, client, nonce } = body
      let session: HttpSession
      try {
        session = await services.sessions.open({ ttlMs, client, nonce })
        recordOwner(session.id)
      } finally {
        answered()
      }
      return json(status, {
        session: formatSessionHandle(status.epoch, { session: session.id, secret: session.secret }),
        id: idText(status.epoch, session.id),
        ttlMs: session.ttlMs,
        expiresInMs: services.sessions.expiresInMs(session),
      })
    },
  }),
  route({
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List sessions.',
    response: sessionsResponse,
    query: sessionsQuery,
    async handle({ services, query: asked, status, authorize }) {
      authorize('read', [''])
      const { stale, ...page } = asked
      const result = await query(services, page, stale ?? false)
      return json(status, {
        sessions: result.sessions.map((view) => sessionJson(status.epoch, view)),
        next: result.next ?? null,
      })
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sessions/end',
    summary: 'Close a session: as its owner with its handle, or as an operator with its decimal id.',
    response: sessionEndResponse,
    query: noQuery,
    body: endSessionBody,
    handleIsProof: true,
    async handle({ services, body, status, authorize, audit }) {
      const { replica, sessions } = services
      if (isHandle(body.session)) {
        const session = await sessions.use(parseSessionHandle(body.session, status.epoch))
        await sessions.close(session, body.reason)
        return json(status, { ended: idText(status.epoch, session.id) })
      }
      authorize('admin', [''])
      const { epoch, serial } = splitToken(parseToken(body.session))
      checkSessionId(body.session, epoch, status.epoch)
      await replica.submit({ kind: 'closeSession', session: serial, by: 'operator', reason: body.reason }, 'closed')
      audit({ event: 'admin', verb: 'end a session', session: idText(status.epoch, serial), why: body.reason })
      return json(status, { ended: idText(status.epoch, serial) })
    },
  }),
]

/** @throws SessionEndedError for a session of an earlier epoch, InvalidError for an id of no epoch of this service */
function checkSessionId(text: string, epoch: number, current: number): void {
  const hint = 'list the sessions: leasehold session ls'
  if (epoch === current) return
  if (epoch === 0 || epoch > current)
    throw new InvalidError(`${text} is not the id of a session of this service`, { hint })
  throw new SessionEndedError(`session ${text} belonged to epoch ${epoch}, and ended with it`, { hint })
}
