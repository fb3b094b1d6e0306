import { connect as connectPlain, createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Logger } from '@leasehold/replica'
import { FIRST_FRAME_TIMEOUT_MS } from '../limits.js'
import { followTls, readTls, type TlsFiles } from '../security/index.js'

/** How members connect to each other. */
export interface Dialer {
  /** Starts to connect; the socket emits `ready` when it may be used. */
  dial(host: string, port: number): Socket
  readonly ready: 'connect' | 'secureConnect'
  /** Creates a server for connections of other members; calls `connected` with each when it may be used. */
  server(connected: (socket: Socket) => void): Server
  close(): void
}

const SOCKET = { noDelay: true, keepAlive: true }

/** Connections without TLS, for members in a trusted network. */
export const plainDialer: Dialer = {
  dial: (host, port) => connectPlain({ host, port, ...SOCKET }),
  ready: 'connect',
  server: (connected) => createPlainServer(SOCKET, connected),
  close() {},
}

/** Mutual TLS: both certificates are signed by an authority in `ca`, and that of the server names the dialed address. */
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
      const mutual = { requestCert: true, rejectUnauthorized: true, handshakeTimeout: FIRST_FRAME_TIMEOUT_MS }
      const server = createTlsServer({ ...SOCKET, ...options, ...mutual }, connected)
      server.on('tlsClientError', (error, socket) => {
        log.warn('rejected a connection to the peer port', {
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
