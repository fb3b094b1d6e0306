import type { HttpBindings } from '@hono/node-server'
import { AccessError, UnavailableError } from '@leasehold/core'
import { Hono } from 'hono'
import { readJson, readQuery } from './request-body.js'
import {
  type Caller,
  type Credentials,
  isAllowed,
  originProblem,
  type OriginRules,
  problemOfCertificate,
} from '../security/index.js'
import { openApi } from './openapi.js'
import { HttpError, isExpected, problemOf } from './problems.js'
import { VERSION } from '../version.js'
import type { Call, HttpContext, Route } from './route.js'
import { acquireRoutes } from './routes/acquire.js'
import { backupRoutes } from './routes/backup.js'
import { clusterRoutes } from './routes/cluster.js'
import { consoleResponse } from './routes/console.js'
import { healthRoutes } from './routes/health.js'
import { holdRoutes } from './routes/holds.js'
import { lockRoutes } from './routes/locks.js'
import { registerRoutes } from './routes/registers.js'
import { sessionRoutes } from './routes/sessions.js'
import { watchRoutes } from './routes/watch.js'
import { check } from './request-schemas.js'
import type { Services } from './services.js'

/** Every operation of the HTTP interface. */
export const ROUTES: readonly Route[] = [
  ...acquireRoutes,
  ...holdRoutes,
  ...sessionRoutes,
  ...lockRoutes,
  ...clusterRoutes,
  ...backupRoutes,
  ...registerRoutes,
  ...watchRoutes,
]

/** The OpenAPI 3.1 document of the HTTP interface. */
export function openApiDocument(): object {
  return openApi(ROUTES, healthRoutes, VERSION)
}

/** Builds the HTTP application, which handles requests independently of sockets. */
export function createApp(services: Services, origins: OriginRules): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use('*', async (context, next) => {
    await next()
    const { cluster, epoch } = services.replica.member.status
    context.header('leasehold-cluster', cluster)
    context.header('leasehold-epoch', String(epoch))
    context.header('x-content-type-options', 'nosniff')
    if (context.res.headers.get('cache-control') === null) context.header('cache-control', 'no-store')
    if (services.stopping) context.header('connection', 'close')
  })
  app.onError((error, context) => errorResponse(services, error, context))
  app.notFound((context) => {
    const { path } = context.req
    const hint = 'the operations are under /v1; names are never in paths'
    return errorResponse(
      services,
      new HttpError(404, 'There is no such route', `no route for ${path.slice(0, 200)}`, hint),
      context,
    )
  })
  addUnversionedRoutes(app, services, origins)
  app.use('/v1/*', async (context, next) => {
    const { req } = context
    const origin = req.header('origin')
    checkOrigin(context, origins)
    const isForeign = origin !== undefined && isAllowed(origin, origins)
    if (isForeign && req.method === 'OPTIONS') return new Response(null, { status: 204, headers: corsHeaders(origin) })
    if (services.stopping) throw new UnavailableError('the server is stopping', { hint: 'retry the request' })
    await next()
    if (isForeign) for (const [name, value] of Object.entries(corsHeaders(origin))) context.header(name, value)
    return undefined
  })
  for (const route of ROUTES) app.on(route.method, route.path, (context) => serve(services, route, context))
  rejectOtherMethods(app, [...ROUTES, ...healthRoutes])
  return app
}

/** @throws AccessError for a request from a page of another site */
function checkOrigin({ req }: HttpContext, origins: OriginRules): void {
  const headers = { host: req.header('host'), origin: req.header('origin'), fetchSite: req.header('sec-fetch-site') }
  const problem = originProblem(headers, origins)
  if (problem === undefined) return
  const hint = 'allow other origins with --allow-origins; name this service with --advertise-url'
  throw new AccessError(problem, { code: 'forbidden', hint })
}

/** CORS headers for pages of allowed origins. */
function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    'access-control-allow-headers': 'content-type, authorization, if-match, if-none-match, last-event-id',
    'access-control-expose-headers': 'leasehold-cluster, leasehold-epoch, leasehold-version, etag',
    'access-control-max-age': '600',
    vary: 'origin',
  }
}

function addUnversionedRoutes(app: Hono<{ Bindings: HttpBindings }>, services: Services, origins: OriginRules): void {
  for (const route of healthRoutes) app.get(route.path, () => route.handle(services))
  app.get('/', ({ req }) => consoleResponse(services, req.raw.headers))
  app.get('/openapi.json', () => Response.json(openApiDocument()))
  app.get('/metrics', async (context) => {
    checkOrigin(context, origins)
    const { caller, denied } = await authenticate(services, undefined, credentialsOf(services, context))
    if (caller === undefined) throw denied
    services.access.authorize(caller, { verb: 'read', names: [''] }, 'free')
    const { body, type } = await services.metrics.text()
    return new Response(body, { headers: { 'content-type': type } })
  })
}

function rejectOtherMethods(
  app: Hono<{ Bindings: HttpBindings }>,
  routes: readonly { method: string; path: string }[],
): void {
  const methods = new Map<string, string[]>([['/', ['GET']]])
  for (const { method, path } of routes) methods.set(path, [...(methods.get(path) ?? []), method])
  for (const [path, known] of methods) {
    const allow = known.includes('GET') ? [...known, 'HEAD'] : known
    app.all(path, () => {
      throw new HttpError(405, 'The method is wrong', `${path} accepts ${known.join(', ')}`, undefined, {
        allow: allow.join(', '),
      })
    })
  }
}

async function serve(services: Services, route: Route, context: HttpContext): Promise<Response> {
  const credentials = credentialsOf(services, context)
  services.metrics.countRequest(`${route.method} ${route.path}`)
  const { caller, denied } = await authenticate(services, route, credentials)
  const query = check(route.query, readQuery(context.req.url), 'query')
  const body = route.body === undefined ? undefined : check(route.body, await readJson(context), 'body')
  const call: Call<unknown, unknown> = {
    services,
    body,
    query,
    status: services.replica.member.status,
    context,
    disconnected: disconnectSignal(context),
    authorize: (verb, names, cost = 'request') => {
      if (caller === undefined) throw denied
      services.access.authorize(caller, { verb, names }, cost)
    },
    revocationOf: (verb, names) => caller && services.access.revocationOf(caller, { verb, names }),
    mayRead: (name) => caller !== undefined && services.access.mayRead(caller, name),
    reserveSession: () => (caller === undefined ? () => {} : services.quotas.reserveSession(caller)),
    reserveWaiter: () => (caller === undefined ? () => {} : services.quotas.reserveWaiter(caller)),
    recordOwner: (session) => {
      if (caller !== undefined) services.quotas.recordOwner(session, caller)
    },
    audit: (record) =>
      services.audit?.write({
        ...record,
        remote: credentials.remote,
        ...(caller && { principal: caller.principal.id }),
      }),
  }
  return route.handle(call)
}

/**
 * Authenticates the caller. For a route whose handle is sufficient proof, a refused key is not an error yet: the key or
 * web token may have expired since the hold was acquired.
 */
async function authenticate(
  { access }: Services,
  route: Route | undefined,
  credentials: Credentials,
): Promise<{ caller?: Caller; denied?: AccessError }> {
  try {
    return { caller: await access.authenticate(credentials) }
  } catch (error) {
    const isHandleProof = route?.handleIsProof === true && credentials.certificateProblem === undefined
    if (!isHandleProof || !(error instanceof AccessError)) throw error
    return { denied: error }
  }
}

function credentialsOf({ requiresCertificates }: Services, context: HttpContext): Credentials {
  const certificateProblem = requiresCertificates ? problemOfCertificate(context.env.incoming.socket) : undefined
  return { key: apiKeyOf(context), remote: remoteOf(context), certificateProblem }
}

function apiKeyOf(context: HttpContext): string {
  const header = context.req.header('authorization') ?? ''
  return /^bearer /i.test(header) ? header.slice(7).trim() : ''
}

function remoteOf(context: HttpContext): string {
  const { remoteAddress, remotePort } = context.env.incoming.socket
  return `${remoteAddress ?? '?'}:${remotePort ?? 0}`
}

/** Aborts when the connection closes before the response was sent. */
function disconnectSignal(context: HttpContext): AbortSignal {
  const controller = new AbortController()
  const { outgoing } = context.env
  if (outgoing.destroyed) controller.abort()
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) controller.abort()
    })
  }
  return controller.signal
}

function errorResponse(services: Services, error: unknown, context: HttpContext): Response {
  if (!isExpected(error)) {
    const stack = error instanceof Error ? error.stack : String(error)
    services.log.error('a request failed', { method: context.req.method, path: context.req.path, error: stack })
  }
  const { cluster, epoch, role, leaderUrl } = services.replica.member.status
  const problem = { ...problemOf(error), cluster, epoch }
  services.metrics.countRefusal(problem.code)
  if (problem.code === 'no-quorum' && role !== 'leader' && leaderUrl !== '')
    return redirect(problem, leaderUrl, context)
  const headers = error instanceof HttpError ? error.headers : {}
  return new Response(`${JSON.stringify(problem)}\n`, {
    status: problem.status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  })
}

/** Redirects the request, which had no effect here, to the leader. `307` keeps method and body. */
function redirect(problem: object, leaderUrl: string, context: HttpContext): Response {
  const { pathname, search } = new URL(context.req.url)
  const headers = {
    'content-type': 'application/problem+json',
    location: `${leaderUrl.replace(/\/$/, '')}${pathname}${search}`,
  }
  return new Response(`${JSON.stringify(problem)}\n`, { status: 307, headers })
}
