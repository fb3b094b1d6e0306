import { InvalidError } from '@leasehold/core'
import { type Got, leaseMismatch } from '../acquire-service.js'
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

/** The session that was named, or one that is opened for this request alone. */
async function sessionFor(
  { services, status, mayOpen, owns }: Call<unknown, unknown>,
  choice: SessionChoice,
): Promise<{ session: HttpSession; owned: boolean }> {
  const { session: handle, ttl, client, nonce, request } = choice
  if (handle === undefined) {
    if (request !== undefined) {
      throw new InvalidError('a request number counts within a session', {
        hint: 'send the session too, or a nonce instead',
      })
    }
    const answered = mayOpen()
    try {
      const session = await services.sessions.open({ ttlMs: ttl ?? DEFAULT_TTL_MS, client: client ?? '', nonce })
      owns(session.id)
      return { session, owned: true }
    } finally {
      answered()
    }
  }
  if (client !== undefined || nonce !== undefined) {
    throw new InvalidError('client and nonce belong to the opening of a session, and this request names one')
  }
  const session = await services.sessions.use(parseSessionHandle(handle, status.epoch))
  owns(session.id)
  leaseMismatch(session, ttl)
  return { session, owned: false }
}

function granted(call: Call<unknown, unknown>, session: HttpSession, owned: boolean, got: Got): Response {
  const { services, status } = call
  const { grant, lasting } = got
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

/** Calls `undo` if the answer never left this machine. */
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
      'Acquire one or several locks. The answer comes when they are granted; going away cancels, unless the request has a number and so may be repeated.',
    answer: grantResponse,
    query: noQuery,
    body: acquireBody,
    async handle(call) {
      const { services, body } = call
      const names = body.locks.map((lock) => lock.name)
      call.allow('acquire', names)
      const answered = body.wait === 0 ? () => {} : call.mayWait()
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
        ends: () => call.ends('acquire', names),
      }
      const got = await services.acquires.acquire(session, owned, spec, call.gone)
      // A client with a number of its own asks again when its answer is lost.
      if (request === undefined) ifUndelivered(call.context, () => services.acquires.undo(session, owned, got.grant))
      return granted(call, session, owned, got)
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cancel',
    summary: 'Cancel a numbered acquire: it leaves the queue, or its hold is released, or it never takes effect.',
    answer: cancelResponse,
    query: noQuery,
    body: cancelBody,
    provesItself: true,
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
    summary: 'Take a portable or persistent hold over, under a new id and a new token.',
    answer: grantResponse,
    query: noQuery,
    body: adoptBody,
    async handle(call) {
      const { services, body, status } = call
      call.allow('acquire', [])
      const { hold, secret } = parseHoldHandle(body.hold, status.epoch)
      if (secret === undefined) {
        throw new InvalidError('this hold cannot be adopted', { hint: 'acquire it with "portable": true' })
      }
      const { session, owned } = await sessionFor(call, body)
      const got = await services.acquires.adopt(session, owned, { hold, secret, request: body.request })
      return granted(call, session, owned, got)
    },
  }),
]
