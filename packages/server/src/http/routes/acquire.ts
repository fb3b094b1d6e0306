import { InvalidError } from '@leasehold/core'
import { type AcquiredHold, checkTtl } from '../acquire-service.js'
import { formatHoldHandle, parseHoldHandle, parseSessionHandle } from '../handles.js'
import type { HttpSession } from '../http-session.js'
import { cancelResponse, grantResponse } from '../response-schemas.js'
import { type Call, type HttpContext, json, type Route, route } from '../route.js'
import { acquireBody, adoptBody, cancelBody, noQuery } from '../request-schemas.js'
import { grantJson } from '../json-views.js'

const DEFAULT_TTL_MS = 10_000

interface SessionChoice {
  readonly session?: string | undefined
  readonly ttl?: number | undefined
  readonly client?: string | undefined
  readonly nonce?: string | undefined
  readonly request?: number | undefined
}

/** Returns the session that the request names, or opens one for this request alone (`owned`). */
async function sessionFor(
  { services, status, reserveSession, recordOwner }: Call<unknown, unknown>,
  choice: SessionChoice,
): Promise<{ session: HttpSession; owned: boolean }> {
  const { session: handle, ttl, client, nonce, request } = choice
  if (handle === undefined) {
    if (request !== undefined) {
      throw new InvalidError('a request number is valid only within a session', {
        hint: 'also send the session, or send a nonce instead',
      })
    }
    const answered = reserveSession()
    try {
      const session = await services.sessions.open({ ttlMs: ttl ?? DEFAULT_TTL_MS, client: client ?? '', nonce })
      recordOwner(session.id)
      return { session, owned: true }
    } finally {
      answered()
    }
  }
  if (client !== undefined || nonce !== undefined) {
    throw new InvalidError('client and nonce open a new session, but this request names an existing one')
  }
  const session = await services.sessions.use(parseSessionHandle(handle, status.epoch))
  recordOwner(session.id)
  checkTtl(session, ttl)
  return { session, owned: false }
}

function grantedResponse(
  call: Call<unknown, unknown>,
  session: HttpSession,
  owned: boolean,
  { grant, lasting }: AcquiredHold,
): Response {
  const { services, status } = call
  const own = { session: session.id, secret: session.secret }
  const hold = formatHoldHandle(status.epoch, {
    hold: grant.hold,
    session: owned && lasting ? undefined : own,
    ownsSession: owned && !lasting,
    secret: grant.secret,
  })
  const { ttlMs } = session
  const lease = lasting
    ? { expiresInMs: null, ttlMs: null }
    : { expiresInMs: services.sessions.expiresInMs(session), ttlMs }
  return json(status, { hold, ...grantJson(status.epoch, grant), ...lease })
}

/** Calls `undo` if the connection closes before the response was sent. */
function ifUndelivered(context: HttpContext, undo: () => void): void {
  const { outgoing } = context.env
  if (outgoing.destroyed && !outgoing.writableFinished) return undo()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) undo()
  })
}

export const acquireRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/acquire',
    summary:
      'Acquire one or more locks. The response is sent when they are granted. Disconnecting cancels the acquire, unless the request has a number and can therefore be retried.',
    response: grantResponse,
    query: noQuery,
    body: acquireBody,
    async handle(call) {
      const { services, body } = call
      const names = body.locks.map((lock) => lock.name)
      call.authorize('acquire', names)
      const answered = body.wait === 0 ? () => {} : call.reserveWaiter()
      const { session, owned } = await sessionFor(call, body).catch((error: unknown) => {
        answered()
        throw error
      })
      const request = body.nonce === undefined ? body.request : 1
      const spec = {
        locks: body.locks,
        waitMs: body.wait,
        lockDelayMs: body.lockDelay ?? 0,
        persistent: body.persistent ?? false,
        portable: body.portable ?? false,
        data: body.data ?? new Uint8Array(0),
        request,
        answered,
        revocation: () => call.revocationOf('acquire', names),
      }
      const acquired = await services.acquires.acquire(session, owned, spec, call.disconnected)
      // A client that numbers its requests retries if the response is lost.
      if (request === undefined) {
        ifUndelivered(call.context, () => services.acquires.undo(session, owned, acquired.grant))
      }
      return grantedResponse(call, session, owned, acquired)
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cancel',
    summary: 'Cancel a numbered acquire: it leaves the queue, its hold is released, or it never takes effect.',
    response: cancelResponse,
    query: noQuery,
    body: cancelBody,
    handleIsProof: true,
    async handle({ services, body, status }) {
      const { sessions, acquires } = services
      const session = await sessions.use(parseSessionHandle(body.session, status.epoch))
      const target = body.request
      const { was } = await sessions.numbered(
        session,
        body.number,
        (numbered) => ({ kind: 'cancel', ...numbered, target }),
        'cancelled',
      )
      acquires.cancelled(session, target)
      return json(status, { was })
    },
  }),
  route({
    method: 'POST',
    path: '/v1/adopt',
    summary: 'Adopt a portable or persistent hold, under a new id and a new token.',
    response: grantResponse,
    query: noQuery,
    body: adoptBody,
    async handle(call) {
      const { services, body, status } = call
      call.authorize('acquire', [])
      const { hold, secret } = parseHoldHandle(body.hold, status.epoch)
      if (secret === undefined) {
        throw new InvalidError('this hold cannot be adopted', { hint: 'acquire it with "portable": true' })
      }
      const { session, owned } = await sessionFor(call, body)
      const adopted = await services.acquires.adopt(session, owned, { hold, secret, request: body.request })
      return grantedResponse(call, session, owned, adopted)
    },
  }),
]
