import { connect, createServer, type Server, type Socket } from 'node:net'

/** A door to a server on 127.0.0.1, which a test can shut, or through which answers no longer come back. */
export class Proxy implements AsyncDisposable {
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  readonly #frozen = new Set<readonly [Socket, Socket]>()
  #accepted = 0
  readonly #server: Server
  #state: 'open' | 'mute' | 'shut' = 'open'
  #target: number

  private constructor(server: Server, target: number) {
    this.#server = server
    this.#target = target
    server.on('connection', (socket) => this.#connected(socket))
  }

  static async start(target: number): Promise<Proxy> {
    const server = createServer()
    const proxy = new Proxy(server, target)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    return address.port
  }

  /** Connections from now on go to this port. */
  retarget(port: number): void {
    this.#target = port
  }

  /** From now on what the server says is lost, while what it is told still arrives. */
  mute(): void {
    this.#state = 'mute'
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#accepted
  }

  /** The present connections stay open, and nothing passes over them any more; new ones work. */
  freeze(): void {
    for (const pair of this.#pairs) this.#frozen.add(pair)
  }

  /** Breaks all connections, and takes no new ones until `open`. */
  shut(): void {
    this.#state = 'shut'
    this.cut()
  }

  /** Everything passes again; connections that were muted are broken, because bytes of them are missing. */
  open(): void {
    if (this.#state === 'mute') this.cut()
    this.#state = 'open'
  }

  /** Breaks all connections; new ones are welcome. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A client that comes again at once must not hold the end up.
    this.shut()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #connected(inside: Socket): void {
    if (this.#state === 'shut') return void inside.destroy()
    this.#accepted++
    const outside = connect(this.#target, '127.0.0.1')
    const pair = [inside, outside] as const
    this.#pairs.add(pair)
    const end = (): void => {
      inside.destroy()
      outside.destroy()
      this.#pairs.delete(pair)
      this.#frozen.delete(pair)
    }
    for (const socket of pair) {
      socket.setNoDelay(true)
      socket.on('error', end)
      socket.on('close', end)
    }
    inside.on('data', (data) => {
      if (!this.#frozen.has(pair)) outside.write(data)
    })
    outside.on('data', (data) => {
      if (this.#state === 'open' && !this.#frozen.has(pair)) inside.write(data)
    })
  }
}
