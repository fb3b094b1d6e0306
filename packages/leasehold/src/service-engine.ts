import type { ConnectionOptions } from 'node:tls'
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
  const open = (url: string): WebSocketLike => new WebSocket(url, socketOptions)
  return new ProtocolEngine({
    urls,
    connector: webSocketConnector(open),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(clientName === undefined ? {} : { clientName }),
  })
}
