import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from 'node:http'
import { type AddressInfo, createServer as createProbe, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { InvalidError, UnavailableError } from '@leasehold/core'
import {
  AcquireService,
  createApp,
  EventStreams,
  HttpError,
  problemOf,
  rawResponse,
  type Services,
  SessionRegistry,
} from './http/index.js'
import { ClusterAdmin } from './peers/index.js'
import { CONNECTIONS_MAX, HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS, REQUEST_TIMEOUT_MS, STOP_TIMEOUT_MS } from './limits.js'
import { ReplicaClient } from './replica-client.js'
import type { Logger } from '@leasehold/replica'
import { Metrics, silent } from './observability/index.js'
import { asksForCredentials, checkOptions, type Checked, type ServerOptions } from './options.js'
import {
  AccessControl,
  auditAppliedEvents,
  AuditLog,
  ClientQuotas,
  followTls,
  isLoopback,
  type OriginRules,
  originsOf,
  readTls,
  type TlsFiles,
} from './security/index.js'
import { WebSocketUpgrade } from './stream/index.js'

/** A listening server. */
export interface LeaseholdServer {
  /** Where clients reach it: the advertised URL, or the address it listens on. */
  readonly url: string
  readonly host: string
  readonly port: number
  /**
   * Stops: takes no more connections, answers who waits, lets commands under way finish, closes streams with code 1001.
   * Resolves within a few seconds whatever clients do. The member goes on.
   */
  close(): Promise<void>
}

/**
 * Opens the network face of a replica: HTTP under `/v1`, the stream of the SDK, health and the console.
 * @throws AccessError when the address can be reached by other machines and nobody is asked for credentials;
 *   UnavailableError when the address is taken; InvalidError for wrong options
 * @example
 * const server = await createServer({ member, listen: { host: '127.0.0.1', port: 4100 } })
 * process.once('SIGTERM', () => void server.close().then(() => member.stop(() => {})))
 */
export async function createServer(options: ServerOptions): Promise<LeaseholdServer> {
  const checked = checkOptions(options)
  const log = options.logger ?? silent
  const { tls } = options
  const audit = options.audit === undefined ? undefined : new AuditLog(options.audit, log)
  const { keys, jwt, clientLimits: limits = {}, authorize } = options
  const access = new AccessControl({ keys, jwt, limits, authorize, audit, log })
  const http = httpServer(tls)
  const unfollow =
    tls === undefined ? () => {} : followTls(tls, log, (context) => (http as HttpsServer).setSecureContext(context))
  http.requestTimeout = REQUEST_TIMEOUT_MS
  http.keepAliveTimeout = KEEP_ALIVE_MS
  http.maxConnections = CONNECTIONS_MAX
  const port = await listen(http, checked)
  warnOfDangers(options, checked, port, log)
  const url =
    checked.advertised?.href.replace(/\/$/, '') ??
    `http${tls === undefined ? '' : 's'}://${hostText(checked.host)}:${port}`
  const replica = new ReplicaClient(options.member, log)
  const sessions = new SessionRegistry(replica)
  const clients = new ClientQuotas(options.member, limits)
  const stopTrail = audit === undefined ? () => {} : auditAppliedEvents(audit, options.member, clients)
  const acquires = new AcquireService(sessions, log)
  let streams = (): number => 0
  const metrics = new Metrics(options.member, () => ({ streams: streams(), waiting: acquires.waiting }))
  options.fsyncs?.((seconds) => metrics.synced(seconds))
  const services: Services = {
    replica,
    sessions,
    acquires,
    streams: new EventStreams(replica),
    cluster: options.cluster === undefined ? undefined : new ClusterAdmin(options.cluster, options.dialer),
    backups: { underWay: 0 },
    log,
    access,
    clients,
    metrics,
    audit,
    asksForCertificates: tls?.ca !== undefined,
    url,
    stopping: false,
  }
  const origins: OriginRules = {
    loopback: isLoopback(checked.host),
    allowed: options.allowedOrigins ?? [],
    members: () => originsOf(options.cluster?.members.map((member) => member.url) ?? []),
    advertisedHost: checked.advertised?.host.toLowerCase() ?? '',
  }
  const door = new WebSocketUpgrade(services, origins)
  streams = () => door.size
  serveHttp(http, services, origins, door)
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await stop(http, services, door)
    for (const end of [unfollow, stopTrail]) end()
    access.close()
    clients.stop()
    metrics.close()
    audit?.close()
  }
  return { url, host: checked.host, port, close: () => (closing ??= close()) }
}

function httpServer(tls: TlsFiles | undefined): HttpServer {
  const options = { maxHeaderSize: 16_384, headersTimeout: HEADERS_TIMEOUT_MS }
  if (tls === undefined) return createHttpServer(options)
  // A client with a wrong certificate is told so by the first answer: a broken handshake would tell nobody why.
  const asks = { requestCert: tls.ca !== undefined, rejectUnauthorized: false }
  return createHttpsServer({ ...options, ...asks, ...readTls(tls), handshakeTimeout: HEADERS_TIMEOUT_MS })
}

function warnOfDangers(options: ServerOptions, { host }: Checked, port: number, log: Logger): void {
  if (isLoopback(host)) return
  if (!asksForCredentials(options))
    log.warn('everybody who reaches this address can take and steal locks', { host, port })
  else if (options.tls === undefined) log.warn('keys cross the network in clear text here: use TLS', { host, port })
}

function serveHttp(http: HttpServer, services: Services, origins: OriginRules, door: WebSocketUpgrade): void {
  const app = createApp(services, origins)
  const listener = getRequestListener((request, env) => app.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: () =>
      problemResponse(new HttpError(400, 'The request is wrong', 'this is no HTTP request that can be served')),
  })
  http.on('request', (incoming, outgoing) => {
    outgoing.on('error', () => {})
    listener(incoming, outgoing).catch((error: unknown) => {
      services.log.error('an answer could not be sent', { error: String(error) })
      outgoing.destroy()
    })
  })
  http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => door.upgrade(request, socket, head))
  http.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseGarbage(error, socket))
}

/** What is no HTTP gets one answer, and the connection ends. */
function refuseGarbage(error: NodeJS.ErrnoException, socket: Socket): void {
  socket.on('error', () => {})
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const problem =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new HttpError(431, 'The headers are too large', 'a request has at most 16384 bytes of headers')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new HttpError(408, 'The request is too slow', `a request arrives within ${REQUEST_TIMEOUT_MS} ms`)
        : new HttpError(400, 'The request is wrong', 'this is no HTTP/1.1')
  socket.end(rawResponse(problem))
}

function problemResponse(error: unknown): Response {
  const problem = problemOf(error)
  const headers = { 'content-type': 'application/problem+json', connection: 'close' }
  return new Response(`${JSON.stringify(problem)}\n`, { status: problem.status, headers })
}

async function listen(http: HttpServer, { host, port }: Checked): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(listenError(error, host, port))
    http.once('error', failed)
    http.listen({ host, port }, () => {
      http.off('error', failed)
      http.on('error', () => {})
      resolve()
    })
  })
  return (http.address() as AddressInfo).port
}

/** Whether the address can be listened on, before anything is made or opened. @throws UnavailableError, InvalidError */
export async function checkListen({ host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  const probe = createProbe()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error) => reject(listenError(error, host, port)))
    probe.listen({ host, port }, resolve)
  })
  await new Promise<void>((resolve) => probe.close(() => resolve()))
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${hostText(host)}:${port}`
  if (error.code === 'EADDRINUSE') {
    return new UnavailableError(`${where} is taken by another program`, {
      hint: 'is a service running there already? Choose another port, or stop it',
      cause: error,
    })
  }
  return new InvalidError(`cannot listen on ${where}: ${error.code ?? error.message}`, { cause: error })
}

function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

async function stop(http: HttpServer, services: Services, door: WebSocketUpgrade): Promise<void> {
  const { acquires, sessions, replica, streams, log } = services
  services.stopping = true
  const closed = new Promise<void>((resolve) => http.close(() => resolve()))
  streams.stop()
  const deadline = performance.now() + STOP_TIMEOUT_MS
  const left = () => Math.max(1, deadline - performance.now())
  await within(Promise.all([acquires.stop(), door.stop()]), left())
  await replica.settled(left())
  http.closeIdleConnections()
  const clean = await within(closed, left())
  if (!clean) log.warn('connections were still busy and were cut', { afterMs: STOP_TIMEOUT_MS })
  http.closeAllConnections()
  await closed
  sessions.stop()
}

/** Whether the work was done in time. */
async function within(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
