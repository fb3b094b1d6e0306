import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy on 127.0.0.1 that can cut its connections at chosen moments. */
export interface Proxy {
  readonly port: number
  /** Cuts all connections now. */
  cut(): void
  /** Passes the next bytes of a client on, and cuts both directions before any answer of the server. */
  cutAfterNextRequest(): void
  close(): Promise<void>
}

export async function proxyTo(target: number): Promise<Proxy> {
  const pairs = new Set<{ client: Socket; server: Socket }>()
  let armed = false
  const listener = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    const pair = { client, server }
    pairs.add(pair)
    let deaf = false
    client.on('data', (bytes) => {
      server.write(bytes)
      if (!armed || isStartup(bytes)) return
      armed = false
      deaf = true
      // The server has the request; its answer never arrives.
      client.destroy()
    })
    server.on('data', (bytes) => {
      if (deaf) server.destroy()
      else client.write(bytes)
    })
    const end = () => {
      pairs.delete(pair)
      client.destroy()
      if (!deaf) server.destroy()
    }
    client.on('close', end)
    server.on('close', end)
    client.on('error', () => {})
    server.on('error', () => {})
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  const cut = () => {
    for (const { client, server } of pairs) {
      client.destroy()
      server.destroy()
    }
  }
  return {
    port: address === null || typeof address === 'string' ? 0 : address.port,
    cut,
    cutAfterNextRequest() {
      armed = true
    },
    async close() {
      cut()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** A start-up packet of PostgreSQL: a length, then protocol version 3.0. */
function isStartup(bytes: Buffer): boolean {
  return bytes.length >= 8 && bytes.readInt32BE(0) === bytes.length && bytes.readInt32BE(4) === 196_608
}
