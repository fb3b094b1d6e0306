import { connect as connectTcp, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type Engine, ProtocolEngine, type WebSocketLike, webSocketConnector } from '@leasehold/client'
import WebSocket from 'ws'

/** For `https://`: certificates and keys, as Node's `tls.connect` takes them. */
export type TlsOptions = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'servername' | 'rejectUnauthorized'
>

/** The address of a service and the connection options. Plain data: it can be passed to another thread. */
export interface ServiceSettings {
  readonly urls: readonly string[]
  readonly tls?: TlsOptions | undefined
  readonly apiKey?: string | undefined
  readonly clientName?: string | undefined
}

/** How long a service that does not answer the closing handshake can keep this process alive. */
const CLOSE_TIMEOUT_MS = 2_000

/** Returns the engine that talks to a service over one WebSocket. */
export function serviceEngine({ urls, tls, apiKey, clientName }: ServiceSettings): Engine {
  const socketOptions = { perMessageDeflate: false, closeTimeout: CLOSE_TIMEOUT_MS, ...tls }
  const open = (url: string): WebSocketLike => {
    const createConnection = url.startsWith('wss:') ? openTls : openTcp
    return new WebSocket(url, { ...socketOptions, createConnection } as WebSocket.ClientOptions)
  }
  return new ProtocolEngine({
    urls,
    connector: webSocketConnector(open),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(clientName === undefined ? {} : { clientName }),
  })
}

/** Connections do not keep the process alive: waiting calls do, so that a program ends without `close`. */
function openTcp(options: NetConnectOpts): Socket {
  return connectTcp({ ...options, path: undefined } as NetConnectOpts).unref()
}

function openTls(options: ConnectionOptions): Socket {
  const { host = '' } = options
  const servername = options.servername ?? (isIP(host) === 0 ? host : '')
  return connectTls({ ...options, path: undefined, servername }).unref()
}
