import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

/** Type and body by path. */
export type Files = Readonly<Record<string, readonly [type: string, body: string]>>

/**
 * A web server as applications have one in front: its own pages, and the stream of the service under the same origin.
 * (Pages of other origins are refused by the service, and by newer browsers when the page is not from this machine.)
 */
export class Front {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(files: Files, service: URL): Promise<Front> {
    const server = createServer((request, response) => {
      const file = files[request.url ?? '']
      if (file === undefined) response.writeHead(404).end()
      else response.writeHead(200, { 'content-type': file[0] }).end(file[1])
    })
    const front = new Front(server)
    server.on('connection', (socket) => front.#kept(socket))
    server.on('upgrade', (request: IncomingMessage, socket: Socket) => front.#forward(request, socket, service))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #forward(request: IncomingMessage, socket: Socket, service: URL): void {
    const { method, url, httpVersion, rawHeaders } = request
    const pairs = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}`] : []))
    const behind = connect(Number(service.port), service.hostname, () => {
      behind.write(`${method} ${url} HTTP/${httpVersion}\r\n${pairs.join('\r\n')}\r\n\r\n`)
      behind.pipe(socket).pipe(behind)
    })
    this.#kept(behind)
    for (const [one, other] of [
      [behind, socket],
      [socket, behind],
    ] as const) {
      one.on('error', () => other.destroy())
    }
  }

  #kept(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
