import { connect as connectPlain, createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Logger } from '@leasehold/replica'
import { followTls, readTls, type TlsFiles } from '../security/index.js'

/** How members connect to each other. */
export interface Dialer {
  /** A connection that is under way; `ready` is the event when it may be used. */
  dial(host: string, port: number): Socket
  readonly ready: 'connect' | 'secureConnect'
  /** What takes the others' connections: `connected` gets each once it may be used. */
  server(connected: (socket: Socket) => void): Server
  close(): void
}

const SOCKET = { noDelay: true, keepAlive: true }

/** For members in a network of their own. */
export const plainDialer: Dialer = {
  dial: (host, port) => connectPlain({ host, port, ...SOCKET }),
  ready: 'connect',
  server: (connected) => createPlainServer(SOCKET, connected),
  close() {},
}

/** TLS with a certificate on both sides, each signed by the authority in `ca` and made out to the address that is dialled. */
export function tlsDialer(files: TlsFiles & { readonly ca: string }, log: Logger): Dialer {
  let options = readTls(files)
  const servers = new Set<TlsServer>()
  const unfollow = followTls(files, log, (changed) => {
    options = changed
    for (const server of servers) server.setSecureContext(changed)
  })
  return {
    dial(host, port) {
      const socket = connectTls({ host, port, ...options })
      socket.setNoDelay(true)
      socket.setKeepAlive(true)
      return socket
    },
    ready: 'secureConnect',
    server(connected) {
      const server = createTlsServer({ ...SOCKET, ...options, requestCert: true, rejectUnauthorized: true }, connected)
      server.on('tlsClientError', (error, socket) => {
        log.warn('a connection to the port for members was refused', {
          remote: socket.remoteAddress,
          why: error.message,
        })
      })
      servers.add(server)
      server.once('close', () => servers.delete(server))
      return server
    },
    close: unfollow,
  }
}
