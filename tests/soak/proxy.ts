import { connect, createServer, type Socket } from 'node:net'

/** A way to a service whose connections can be cut at any moment, in the middle of a frame. */
export class CuttingProxy {
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ noDelay: true }, (inner) => this.#accept(inner))
  readonly #target: { host: string; port: number }
  cuts = 0

  private constructor(target: { host: string; port: number }) {
    this.#target = target
  }

  static async to(url: string): Promise<{ proxy: CuttingProxy; url: string }> {
    const { hostname, port } = new URL(url)
    const proxy = new CuttingProxy({ host: hostname, port: Number(port) })
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject)
      proxy.#server.listen(0, '127.0.0.1', resolve)
    })
    const address = proxy.#server.address() as { port: number }
    return { proxy, url: `http://127.0.0.1:${address.port}` }
  }

  /** Cuts each connection with this probability. */
  cut(share: number, random: () => number): void {
    for (const socket of this.#sockets) {
      if (random() >= share) continue
      this.cuts++
      socket.destroy()
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(inner: Socket): void {
    const outer = connect({ ...this.#target, noDelay: true })
    this.#sockets.add(inner)
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      from.on('error', () => {})
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  }
}
