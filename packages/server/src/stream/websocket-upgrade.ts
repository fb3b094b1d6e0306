import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { AccessError, type LockState, UnavailableError } from '@leasehold/core'
import { lockViews, StreamHub } from '@leasehold/replica'
import { type WebSocket, WebSocketServer } from 'ws'
import type { ConnectionGate } from '../connection-gate.js'
import { PREAUTH_BYTES_MAX, FRAME_BYTES_MAX, STREAM_CLOSE_MS } from '../limits.js'
import { PreauthBuffer } from './preauth-buffer.js'
import { originProblem, type OriginRules, problemOfCertificate } from '../security/index.js'
import { HttpError, rawResponse, type Services } from '../http/index.js'
import { StreamConnection } from './stream-connection.js'

export const STREAM_PATH = '/v1/stream'

/** Close code of a server that stops: clients reconnect, here or to another member. */
const GOING_AWAY = 1001

/** Accepts or rejects WebSocket upgrades, and keeps the open streams. */
export class WebSocketUpgrade {
  readonly #services: Services
  readonly #origins: OriginRules
  readonly #gate: ConnectionGate
  readonly #hub: StreamHub<LockState>
  readonly #open = new Set<StreamConnection>()
  readonly #preauth = new PreauthBuffer(PREAUTH_BYTES_MAX)
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_MAX,
    clientTracking: false,
  })

  constructor(services: Services, origins: OriginRules, gate: ConnectionGate) {
    this.#services = services
    this.#origins = origins
    this.#gate = gate
    this.#hub = new StreamHub({
      member: services.replica.member,
      views: lockViews,
      urls: () => [services.url],
    })
    this.#server.on('wsClientError', (error, socket) => {
      reject(
        socket as Socket,
        new HttpError(400, 'The request is wrong', `not a WebSocket handshake: ${error.message}`),
      )
    })
  }

  /** Number of open streams. */
  get size(): number {
    return this.#open.size
  }

  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => {})
    const problem = this.#rejection(request)
    if (problem !== undefined) {
      reject(socket, problem)
      return
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#opened(webSocket, request))
  }

  /** Waits until pending responses are sent, then closes every stream with code 1001. */
  async stop(): Promise<void> {
    const streams = [...this.#open]
    for (const stream of streams) stream.stopReading()
    await this.#services.replica.read(false, () => {}).catch(() => {})
    await Promise.all(streams.map((stream) => stream.close(GOING_AWAY, 'the server is stopping', STREAM_CLOSE_MS)))
    this.#hub.stop()
  }

  #rejection(request: IncomingMessage): Error | undefined {
    const path = (request.url ?? '').split('?', 1)[0]
    if (path !== STREAM_PATH) {
      return new HttpError(404, 'There is no such route', 'no stream at this path', `the stream is at ${STREAM_PATH}`)
    }
    const { host, origin, 'sec-fetch-site': fetchSite } = request.headers
    const site = Array.isArray(fetchSite) ? fetchSite[0] : fetchSite
    const problem = originProblem({ host, origin, fetchSite: site }, this.#origins)
    if (problem !== undefined) return new AccessError(problem, { code: 'forbidden' })
    return this.#services.stopping ? new UnavailableError('the server is stopping') : undefined
  }

  #opened(webSocket: WebSocket, request: IncomingMessage): void {
    const { remoteAddress, remotePort } = request.socket
    const remote = `${remoteAddress ?? '?'}:${remotePort ?? 0}`
    const { requiresCertificates } = this.#services
    const certificateProblem = requiresCertificates ? problemOfCertificate(request.socket) : undefined
    const from = { remote, certificateProblem }
    const share = this.#preauth.open(() => {
      this.#services.log.warn('cut a stream: it sent the most bytes of all unauthenticated connections', { remote })
      webSocket.terminate()
    })
    // Bytes of incomplete frames count as well, so they are counted on the socket.
    const count = (bytes: Buffer): void => share.add(bytes.length)
    request.socket.on('data', count)
    const welcomed = (): void => {
      request.socket.off('data', count)
      share.end()
      this.#gate.establish(request.socket)
    }
    const closed = (): boolean => this.#open.delete(stream)
    const stream = new StreamConnection(webSocket, this.#services, this.#hub, from, { welcomed, closed })
    this.#open.add(stream)
  }
}

function reject(socket: Socket, problem: Error): void {
  if (socket.writable) socket.end(rawResponse(problem))
  else socket.destroy()
}
