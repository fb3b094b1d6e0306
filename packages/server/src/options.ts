import { AccessError, InvalidError, type LockState } from '@leasehold/core'
import type { Logger, Member } from '@leasehold/replica'
import { type Authorize, type ClientLimits, isLoopback, type JwtOptions, type TlsFiles } from './security/index.js'
import type { ClusterMember, Dialer } from './peers/index.js'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 4100

export interface ServerOptions {
  /** The replica to serve. The server never stops it. */
  readonly member: Member<LockState>
  /** For a member of a cluster: the interface for membership changes, such as a `Replica`. */
  readonly cluster?: ClusterMember
  /** How this member connects to others; default: without TLS. */
  readonly dialer?: Dialer
  /** Default 127.0.0.1:4100; port 0 selects a free port. */
  readonly listen?: { readonly host?: string; readonly port?: number }
  /** The URL for clients, if it differs from the address on which the server listens. */
  readonly advertiseUrl?: string
  /** Permits a server without authentication to listen on an address that other machines can reach. */
  readonly allowAnonymous?: boolean
  /** Origins, such as `https://tools.example`, whose pages may use the service from a browser. Default: none. */
  readonly allowedOrigins?: readonly string[]
  /** Authorizes every operation, in addition to keys and web tokens. */
  readonly authorize?: Authorize
  /** File with the hashes of API keys, as `leasehold key create` writes it. Default: no keys are required. */
  readonly keys?: string
  /** Accepts JSON Web Tokens whose claim `leasehold` lists access rules. */
  readonly jwt?: JwtOptions
  /** Limits of one client. Default: only the limits of the service. */
  readonly clientLimits?: ClientLimits
  /** Enables HTTPS. With `ca`, clients need a certificate from one of its authorities. */
  readonly tls?: TlsFiles
  /** File of the audit log, in JSON lines; `-` is standard output. Default: none. */
  readonly audit?: string
  /** Registers an observer of the durations of fsyncs, for the metrics. */
  readonly fsyncs?: (observe: (seconds: number) => void) => void
  /** Default: silent. */
  readonly logger?: Logger
}

export interface CheckedOptions {
  readonly host: string
  readonly port: number
  readonly advertised: URL | undefined
}

/** Checks the options before anything is opened. */
export function checkOptions(options: ServerOptions): CheckedOptions {
  const host = options.listen?.host ?? DEFAULT_HOST
  const port = options.listen?.port ?? DEFAULT_PORT
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidError(`the port must be 0 to 65535, not ${port}`)
  if (host === '') throw new InvalidError('the host to listen on is empty', { hint: `write '${DEFAULT_HOST}'` })
  if (!isLoopback(host) && options.allowAnonymous !== true && !requiresCredentials(options)) {
    throw new AccessError(`refusing to listen on ${host}: every client that reaches it could acquire and steal locks`, {
      code: 'forbidden',
      hint: `require keys (--keys FILE), listen on ${DEFAULT_HOST}, or allow anonymous access (--allow-anonymous) on a network that you trust`,
    })
  }
  return { host, port, advertised: advertisedUrl(options.advertiseUrl) }
}

/** Whether the server rejects anonymous callers. */
export function requiresCredentials({
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
    throw new InvalidError(`the advertised URL is not a URL: ${JSON.stringify(text.slice(0, 80))}`)
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InvalidError(`the advertised URL must start with http:// or https://, not ${url.protocol}`)
  }
  return url
}
