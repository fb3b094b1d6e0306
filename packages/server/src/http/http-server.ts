import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https'
import { type AddressInfo, createServer as createProbe, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { InvalidError, UnavailableError } from '@leasehold/core'
import type { Logger } from '@leasehold/replica'
import { ConnectionGate, connectionLimits, descriptorLimit } from '../connection-gate.js'
import {
  HEADERS_BYTES_MAX,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  LATE_CHECK_MS,
  REQUEST_TIMEOUT_MS,
  STALLED_TIMEOUT_MS,
} from '../limits.js'
import { followTls, type OriginRules, readTls, type TlsFiles } from '../security/index.js'
import { createApp } from './app.js'
import { HttpError, problemOf, rawResponse } from './problems.js'
import { RequestPipelines } from './request-pipeline.js'
import type { Services } from './services.js'

/** An HTTP or HTTPS server that is not listening yet, and what stops the watch on its TLS files. */
export interface HttpListener {
  readonly http: HttpServer
  readonly stopWatching: () => void
  readonly gate: ConnectionGate
}

/** Creates the server with its limits, and reloads its TLS files when they change. @throws InvalidError */
export function createHttpListener(tls: TlsFiles | undefined, log: Logger): HttpListener {
  const http = tls === undefined ? createHttpServer(SERVER_OPTIONS) : httpsServer(tls)
  const stopWatching =
    tls === undefined ? () => {} : followTls(tls, log, (context) => (http as HttpsServer).setSecureContext(context))
  http.requestTimeout = REQUEST_TIMEOUT_MS
  http.keepAliveTimeout = KEEP_ALIVE_MS
  http.timeout = STALLED_TIMEOUT_MS
  const gate = new ConnectionGate(connectionLimits(descriptorLimit()).clients)
  http.on('connection', (socket: Socket) => gate.accept(socket))
  return { http, stopWatching, gate }
}

const SERVER_OPTIONS = {
  maxHeaderSize: HEADERS_BYTES_MAX,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: LATE_CHECK_MS,
}

function httpsServer(tls: TlsFiles): HttpsServer {
  // The handshake accepts a wrong client certificate: the first response can then report the reason.
  const clientCertificates = { requestCert: tls.ca !== undefined, rejectUnauthorized: false }
  return createHttpsServer({
    ...SERVER_OPTIONS,
    ...clientCertificates,
    ...readTls(tls),
    handshakeTimeout: HEADERS_TIMEOUT_MS,
  })
}

/** Passes requests to the HTTP application, and WebSocket upgrades to `upgrade`. */
export function serveHttp(
  { http, gate }: Pick<HttpListener, 'http' | 'gate'>,
  services: Services,
  origins: OriginRules,
  upgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void,
): void {
  const app = createApp(services, origins)
  const listener = getRequestListener((request, env) => app.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: () => closingResponse(new HttpError(400, 'The request is wrong', 'not a valid HTTP request')),
  })
  const pipelines = new RequestPipelines((incoming, outgoing) => {
    listener(incoming, outgoing).catch((error: unknown) => {
      services.log.error('cannot send a response', { error: String(error) })
      outgoing.destroy()
    })
  })
  http.on('request', (incoming, outgoing) => {
    outgoing.on('error', () => {})
    establishWhenComplete(gate, incoming, outgoing)
    pipelines.add(incoming, outgoing)
  })
  http.on('timeout', (socket) => {
    // A waiting acquire sends nothing for a long time. An idle connection, and one whose client does not read, is closed.
    if (pipelines.size(socket) === 0 || socket.writableLength > 0) socket.destroy()
  })
  http.on('upgrade', upgrade)
  http.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => rejectMalformed(error, socket))
}

/** A request without a body is complete with its headers; others once they were read or rejected. */
function establishWhenComplete(gate: ConnectionGate, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { socket, headers } = incoming
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (!hasBody) return gate.establish(socket)
  incoming.once('end', () => gate.establish(socket))
  outgoing.once('finish', () => gate.establish(socket))
}

/** Sends one error response for input that is not HTTP, and closes the connection. */
function rejectMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  socket.on('error', () => {})
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const problem =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new HttpError(431, 'The headers are too large', `a request has at most ${HEADERS_BYTES_MAX} bytes of headers`)
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new HttpError(408, 'The request is too slow', `a request must arrive within ${REQUEST_TIMEOUT_MS} ms`)
        : new HttpError(400, 'The request is wrong', 'not HTTP/1.1')
  socket.end(rawResponse(problem))
}

function closingResponse(error: unknown): Response {
  const problem = problemOf(error)
  const headers = { 'content-type': 'application/problem+json', connection: 'close' }
  return new Response(`${JSON.stringify(problem)}\n`, { status: problem.status, headers })
}

interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Listens, and returns the port. @throws UnavailableError when the address is in use, InvalidError for a wrong address */
export async function listenOn(http: HttpServer, { host, port }: ListenAddress): Promise<number> {
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

/** Checks that the address is free, before any data is created or opened. @throws UnavailableError, InvalidError */
export async function checkListen({ host, port }: ListenAddress): Promise<void> {
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
      hint: 'is a service already running there? Choose another port, or stop it',
      cause: error,
    })
  }
  return new InvalidError(`cannot listen on ${where}: ${error.code ?? error.message}`, { cause: error })
}

/** The host as part of a URL: an IPv6 address is in brackets. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
