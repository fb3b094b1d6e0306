import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { AccessError, type LockState, UnavailableError } from '@leasehold/core'
import { lockViews, StreamHub } from '@leasehold/replica'
import { type WebSocket, WebSocketServer } from 'ws'
import { EARLY_BYTES_MAX, FRAME_BYTES_MAX, STREAM_CLOSE_MS } from '../limits.js'
import { PreauthBuffer } from './preauth-buffer.js'
import { originProblem, type OriginRules, problemOfCertificate } from '../security/index.js'
import { HttpError, rawResponse, type Services } from '../http/index.js'
import { StreamConnection } from './stream-connection.js'

export const STREAM_PATH = '/v1/stream'

/** Close code of a server that stops: clients connect again, here or elsewhere. */
const GOING_AWAY = 1001

/** The WebSocket door: who may open a stream, and the streams that are open. */
export class WebSocketUpgrade {
  readonly #hub: StreamHub<LockState>
  readonly #open = new Set<StreamConnection>()
  readonly #early = new PreauthBuffer(EARLY_BYTES_MAX)
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_MAX,
    clientTracking: false,
  })

  constructor(
    readonly services: Services,
    readonly origins: OriginRules,
  ) {
    this.#hub = new StreamHub({
      member: services.replica.member,
      views: lockViews,
      urls: () => [services.url],
    })
    this.#server.on('wsClientError', (error, socket) => {
      refuse(
        socket as Socket,
        new HttpError(400, 'The request is wrong', `this is no WebSocket handshake: ${error.message}`),
      )
    })
  }

  /** Open streams. */
  get size(): number {
    return this.#open.size
  }

  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => {})
    const problem = this.#problem(request)
    if (problem !== undefined) {
      refuse(socket, problem)
      return
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#opened(webSocket, request))
  }

  /** Lets answers that are under way leave, then closes every stream with code 1001. */
  async stop(): Promise<void> {
    const streams = [...this.#open]
    for (const stream of streams) stream.stopReading()
    await this.services.replica.read(false, () => {}).catch(() => {})
    await Promise.all(streams.map((stream) => stream.close(GOING_AWAY, 'the server is stopping', STREAM_CLOSE_MS)))
    this.#hub.stop()
  }

  #problem(request: IncomingMessage): Error | undefined {
    const path = (request.url ?? '').split('?', 1)[0]
    if (path !== STREAM_PATH) {
      return new HttpError(
        404,
        'There is no such route',
        'there is no stream at this path',
        `the stream is at ${STREAM_PATH}`,
      )
    }
    const { host, origin, 'sec-fetch-site': fetchSite } = request.headers
    const site = Array.isArray(fetchSite) ? fetchSite[0] : fetchSite
    const problem = originProblem({ host, origin, fetchSite: site }, this.origins)
    if (problem !== undefined) return new AccessError(problem, { code: 'forbidden' })
    return this.services.stopping ? new UnavailableError('the server is stopping') : undefined
  }

  #opened(webSocket: WebSocket, request: IncomingMessage): void {
    const { remoteAddress, remotePort } = request.socket
    const remote = `${remoteAddress ?? '?'}:${remotePort ?? 0}`
    const { asksForCertificates } = this.services
    const certificateProblem = asksForCertificates ? problemOfCertificate(request.socket) : undefined
    const from = { remote, certificateProblem }
    const share = this.#early.open(() => {
      this.services.log.warn('a stream was cut: it sent most of what came without good credentials', { remote })
      webSocket.terminate()
    })
    // Frames are told when they are complete; what is kept until then counts as well.
    const count = (bytes: Buffer): void => share.took(bytes.length)
    request.socket.on('data', count)
    const welcomed = (): void => {
      request.socket.off('data', count)
      share.end()
    }
    const closed = (): boolean => this.#open.delete(stream)
    const stream = new StreamConnection(webSocket, this.services, this.#hub, from, { welcomed, closed })
    this.#open.add(stream)
  }
}

function refuse(socket: Socket, problem: Error): void {
  if (socket.writable) socket.end(rawResponse(problem))
  else socket.destroy()
}
