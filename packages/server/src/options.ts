import { AccessError, InvalidError, type LockState } from '@leasehold/core'
import type { Logger, Member } from '@leasehold/replica'
import { type Authorize, type ClientLimits, isLoopback, type JwtOptions, type TlsFiles } from './security/index.js'
import type { ClusterMember, Dialer } from './peers/index.js'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 4100

export interface ServerOptions {
  /** The replica whose face this is. The server never stops it. */
  readonly member: Member<LockState>
  /** Of a member of a cluster: what operators change it by (a `Replica` fits). */
  readonly cluster?: ClusterMember
  /** How this member connects to others; default: without TLS. */
  readonly dialer?: Dialer
  /** Default 127.0.0.1:4100; port 0 takes a free one. */
  readonly listen?: { readonly host?: string; readonly port?: number }
  /** Where clients reach this server, when that is not the address it listens on. */
  readonly advertiseUrl?: string
  /** Lets the server listen where other machines reach it although it asks nobody for credentials. */
  readonly allowAnonymous?: boolean
  /** Origins, such as `https://tools.example`, whose pages may use the service from a browser. Default: none. */
  readonly allowedOrigins?: readonly string[]
  /** Decides over every operation, in addition to keys and web tokens. */
  readonly authorize?: Authorize
  /** File with the hashes of API keys, as `leasehold key create` writes it. Without keys and web tokens, nobody is asked. */
  readonly keys?: string
  /** Lets callers in with JSON Web Tokens whose claim `leasehold` lists access rules. */
  readonly jwt?: JwtOptions
  /** What one client may do. Default: no limits but those of the service. */
  readonly clientLimits?: ClientLimits
  /** HTTPS. With `ca`, clients need a certificate of one of its authorities. */
  readonly tls?: TlsFiles
  /** File for the audit's JSON lines; `-` is standard output. Default: none. */
  readonly audit?: string
  /** Where the member tells how long its writes took, for the metrics. */
  readonly fsyncs?: (observe: (seconds: number) => void) => void
  /** Default: silent. */
  readonly logger?: Logger
}

export interface Checked {
  readonly host: string
  readonly port: number
  readonly advertised: URL | undefined
}

/** Checks the options before anything is opened. */
export function checkOptions(options: ServerOptions): Checked {
  const host = options.listen?.host ?? DEFAULT_HOST
  const port = options.listen?.port ?? DEFAULT_PORT
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidError(`a port is 0 to 65535, not ${port}`)
  if (host === '') throw new InvalidError('the host to listen on is empty', { hint: `write '${DEFAULT_HOST}'` })
  if (!isLoopback(host) && options.allowAnonymous !== true && !asksForCredentials(options)) {
    throw new AccessError(`refusing to listen on ${host}: everybody who reaches it could take and steal locks`, {
      code: 'forbidden',
      hint: `ask for keys (--keys FILE), listen on ${DEFAULT_HOST}, or allow anonymous access (--allow-anonymous) on a network that you trust`,
    })
  }
  return { host, port, advertised: advertisedUrl(options.advertiseUrl) }
}

/** Whether a stranger is kept out. */
export function asksForCredentials({
  authorize,
  keys,
  jwt,
  tls,
}: Pick<ServerOptions, 'authorize' | 'keys' | 'jwt' | 'tls'>): boolean {
  return authorize !== undefined || keys !== undefined || jwt !== undefined || tls?.ca !== undefined
}

function advertisedUrl(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidError(`the advertised URL is no URL: ${JSON.stringify(text.slice(0, 80))}`)
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InvalidError(`the advertised URL starts with http:// or https://, not ${url.protocol}`)
  }
  return url
}
