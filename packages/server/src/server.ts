import type { Server as HttpServer } from 'node:http'
import type { Logger } from '@leasehold/replica'
import {
  AcquireService,
  createHttpListener,
  EventStreams,
  hostText,
  listenOn,
  serveHttp,
  type Services,
  SessionRegistry,
} from './http/index.js'
import { STOP_TIMEOUT_MS } from './limits.js'
import { Metrics, silent } from './observability/index.js'
import { type CheckedOptions, checkOptions, requiresCredentials, type ServerOptions } from './options.js'
import { ClusterAdmin } from './peers/index.js'
import { ReplicaClient } from './replica-client.js'
import {
  AccessControl,
  auditAppliedEvents,
  AuditLog,
  ClientQuotas,
  isLoopback,
  type OriginRules,
  originsOf,
} from './security/index.js'
import { WebSocketUpgrade } from './stream/index.js'

/** A listening server. */
export interface LeaseholdServer {
  /** The URL for clients: the advertised URL, or the address on which the server listens. */
  readonly url: string
  readonly host: string
  readonly port: number
  /**
   * Stops: accepts no more connections, rejects waiting acquires, lets submitted commands finish, and closes streams with
   * code 1001. Resolves within a few seconds, whatever clients do. The member keeps running.
   */
  close(): Promise<void>
}

/**
 * Opens the network interface of a replica: HTTP under `/v1`, the stream of the SDK, health and the console.
 * @throws AccessError when other machines can reach the address and no credentials are required; UnavailableError when the
 *   address is in use; InvalidError for wrong options
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
  const { http, stopWatching, gate } = createHttpListener(tls, log)
  const port = await listenOn(http, checked)
  warnOfDangers(options, checked, port, log)
  const url =
    checked.advertised?.href.replace(/\/$/, '') ??
    `http${tls === undefined ? '' : 's'}://${hostText(checked.host)}:${port}`
  const quotas = new ClientQuotas(options.member, limits)
  const stopTrail = audit === undefined ? () => {} : auditAppliedEvents(audit, options.member, quotas)
  let streams = (): number => 0
  const services = createServices(options, { log, audit, access, quotas, url }, () => streams())
  const origins = originRules(options, checked)
  const webSockets = new WebSocketUpgrade(services, origins, gate)
  streams = () => webSockets.size
  serveHttp({ http, gate }, services, origins, (request, socket, head) => webSockets.upgrade(request, socket, head))
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await stop(http, services, webSockets)
    for (const end of [stopWatching, stopTrail]) end()
    access.close()
    quotas.stop()
    services.metrics.close()
    audit?.close()
  }
  return { url, host: checked.host, port, close: () => (closing ??= close()) }
}

function createServices(
  { member, fsyncs, cluster, dialer, tls }: ServerOptions,
  shared: Pick<Services, 'log' | 'audit' | 'access' | 'quotas' | 'url'>,
  streams: () => number,
): Services {
  const replica = new ReplicaClient(member, shared.log)
  const sessions = new SessionRegistry(replica)
  const acquires = new AcquireService(sessions, shared.log)
  const metrics = new Metrics(member, () => ({ streams: streams(), waiting: acquires.waiting }))
  fsyncs?.((seconds) => metrics.observeFsync(seconds))
  return {
    ...shared,
    replica,
    sessions,
    acquires,
    metrics,
    eventStreams: new EventStreams(replica),
    cluster: cluster === undefined ? undefined : new ClusterAdmin(cluster, dialer),
    backups: { inProgress: 0 },
    requiresCertificates: tls?.ca !== undefined,
    stopping: false,
  }
}

function originRules(options: ServerOptions, { host, advertised }: CheckedOptions): OriginRules {
  const { cluster, allowedOrigins = [] } = options
  return {
    hosts: isLoopback(host) ? 'loopback' : requiresCredentials(options) ? 'any' : 'anonymous',
    allowed: allowedOrigins,
    members: () => originsOf(cluster?.members.map((member) => member.url) ?? []),
    advertisedHost: (advertised?.host ?? hostText(host)).toLowerCase(),
  }
}

function warnOfDangers(options: ServerOptions, { host }: CheckedOptions, port: number, log: Logger): void {
  if (isLoopback(host)) return
  if (!requiresCredentials(options))
    log.warn('every client that reaches this address can acquire and steal locks', { host, port })
  else if (options.tls === undefined) log.warn('keys cross the network in clear text here: use TLS', { host, port })
}

async function stop(http: HttpServer, services: Services, webSockets: WebSocketUpgrade): Promise<void> {
  const { acquires, sessions, replica, eventStreams, log } = services
  services.stopping = true
  const closed = new Promise<void>((resolve) => http.close(() => resolve()))
  eventStreams.stop()
  const deadline = performance.now() + STOP_TIMEOUT_MS
  const left = () => Math.max(1, deadline - performance.now())
  await isDoneWithin(Promise.all([acquires.stop(), webSockets.stop()]), left())
  await replica.settled(left())
  http.closeIdleConnections()
  const isClean = await isDoneWithin(closed, left())
  if (!isClean) log.warn('cut connections that were still busy', { afterMs: STOP_TIMEOUT_MS })
  http.closeAllConnections()
  await closed
  sessions.stop()
}

async function isDoneWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
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
