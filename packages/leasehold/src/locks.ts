import {
  ALL_CAPABILITIES,
  createLocksOn,
  type Engine,
  type Fetch,
  HttpEngine,
  LazyEngine,
  type Locks,
  type LocksOptions as ClientOptions,
  streamUrl,
} from '@leasehold/client'
import { InvalidError } from '@leasehold/core'
import { publishDiagnostics } from './diagnostics.js'
import { serviceEngine, type ServiceSettings, type TlsOptions } from './service-engine.js'
import { defaultUrl } from './url.js'

export { DEFAULT_URL, defaultUrl } from './url.js'

export type {
  AdoptOptions,
  CampaignOptions,
  DelayRow,
  Election,
  HeldLock,
  HeldRow,
  Hold,
  HoldState,
  HoldWarning,
  Leader,
  LockName,
  LockNames,
  Locks,
  LocksView,
  LocksWarning,
  OnceOptions,
  PendingRow,
  PutOptions,
  QueryOptions,
  Register,
  RegisterEntry,
  RequestOptions,
  SessionRow,
  WatchEvent,
  WatchOptions,
} from '@leasehold/client'
export type { Duration, Mode } from '@leasehold/core'

/** Options of `createLocks` and `connect`. */
export interface LocksOptions extends ClientOptions {
  /** For `https://` and `etcd+tls://`: certificates and keys, as Node's `tls.connect` takes them. */
  readonly tls?: TlsOptions
  /**
   * The protocol to a service. `'stream'` (default): one WebSocket for everything. `'http'`: requests without a connection, for
   * functions that live for one request. It has no watches, and detects a steal with the next renewal.
   */
  readonly transport?: 'stream' | 'http'
  /**
   * The thread that renews leases of a service. `'main'` (default): this one. `'worker'` (Node): a worker thread, so that a long
   * computation keeps its locks. A program that hangs keeps them, too: see `maxHold`.
   */
  readonly keepAlive?: 'main' | 'worker'
}

const SCHEMES =
  "'http://…' or 'https://…' (a service; several members by comma), 'file:./data', 'memory:NAME', 'etcd://h1,h2,h3', 'postgres://…'"

/**
 * Returns a client that connects on first use.
 *
 * @param url default: `LEASEHOLD_URL`, or http://127.0.0.1:4100. `'http://host:4100,http://host2:4100'`: a service. `'file:./data'`: a service inside this process, with its
 *   own data folder. `'memory:NAME'`: the same without a disk, for tests; one NAME is one service per process.
 * @throws InvalidError for a URL or an option that does not exist
 * @example
 * const locks = createLocks('http://127.0.0.1:4100')
 * await locks.request('billing/invoice-42', async (hold) => { … })
 */
export function createLocks(url: string = defaultUrl(), options: LocksOptions = {}): Locks {
  publishDiagnostics()
  const { tls, transport, keepAlive, ...client } = checkOptions(options)
  return createLocksOn(engineOf(url, options), client)
}

/**
 * Returns a client that is connected.
 *
 * @throws UnavailableError when the service cannot be reached within `connectTimeout`; see also {@link createLocks}
 * @example
 * await using locks = await connect('http://127.0.0.1:4100')
 */
export async function connect(url: string = defaultUrl(), options: LocksOptions = {}): Promise<Locks> {
  const locks = createLocks(url, options)
  try {
    return await locks.connect()
  } catch (error) {
    await locks.close()
    throw error
  }
}

function engineOf(url: string, options: LocksOptions): Engine {
  if (typeof url !== 'string') throw new InvalidError(`a URL is a string, not a ${typeof url}`, { hint: SCHEMES })
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  if (options.keepAlive === 'worker' && scheme !== undefined && !scheme.startsWith('http')) {
    throw new InvalidError(`keepAlive: 'worker' is for services at http:// or https://, not for ${scheme}:`, {
      hint: "leave keepAlive out, or write keepAlive: 'main'",
    })
  }
  switch (scheme) {
    case 'http':
    case 'https':
      return remoteEngine(url, options)
    case 'file':
    case 'memory':
      return new LazyEngine({ name: url, capabilities: ALL_CAPABILITIES, load: () => embedded(url) })
    case 'postgres':
    case 'postgresql':
      return new LazyEngine({
        name: withoutPassword(url),
        capabilities: ALL_CAPABILITIES,
        load: () => postgres(url, options),
      })
    case 'etcd':
    case 'etcd+tls':
      return new LazyEngine({
        name: withoutPassword(url),
        capabilities: ALL_CAPABILITIES,
        load: () => etcd(url, options),
      })
    case 'redis':
    case 'rediss':
      throw new InvalidError(
        'Redis has approximate locks only: without tokens, to avoid duplicate work, not for safety',
        {
          hint: "connectApproximate('redis://…'); or 'postgres://…', 'file:./data', 'http://…' for locks with tokens",
        },
      )
    default:
      throw new InvalidError(`no engine for ${JSON.stringify(url.slice(0, 80))}`, { hint: `it is one of ${SCHEMES}` })
  }
}

/** Loads the engine on first use: an application that talks to a service needs no replica. */
async function embedded(url: string): Promise<Engine> {
  const { embeddedEngine } = await import('@leasehold/engines/embedded')
  return embeddedEngine(url)
}

async function etcd(url: string, { tls }: LocksOptions): Promise<Engine> {
  const { etcdEngine } = await import('@leasehold/engines/etcd')
  return etcdEngine(url, tls === undefined ? {} : { tls })
}

async function postgres(url: string, { tls }: LocksOptions): Promise<Engine> {
  const { postgresEngine } = await import('@leasehold/engines/postgres')
  // Without any TLS option, `sslmode` in the URL applies.
  const isGiven = tls !== undefined && Object.values(tls).some((value) => value !== undefined)
  return postgresEngine(url, isGiven ? { ssl: tls } : {})
}

/** The URL as messages may show it. */
function withoutPassword(url: string): string {
  return url.replace(/^([^/]*\/\/[^/@:]*):[^/@]*@/, '$1@').replace(/\?.*$/, '')
}

/** The engine for a service of one URL or several. */
function remoteEngine(text: string, options: LocksOptions): Engine {
  const { tls, apiKey, clientName, keepAlive } = options
  const urls = text.split(',').map((url) => url.trim())
  for (const url of urls) {
    if (!/^https?:\/\//i.test(url)) {
      throw new InvalidError(`not the URL of a service: ${JSON.stringify(url.slice(0, 80))}`, {
        hint: "write 'http://host:4100,http://host2:4100'",
      })
    }
    streamUrl(url)
  }
  if (options.transport === 'http') return httpEngine(urls, options)
  const settings: ServiceSettings = { urls, tls, apiKey, clientName }
  if (keepAlive !== 'worker') return serviceEngine(settings)
  return new LazyEngine({
    name: text,
    capabilities: ALL_CAPABILITIES,
    load: () => workerEngine(settings),
  })
}

async function workerEngine(settings: ServiceSettings): Promise<Engine> {
  try {
    const { threadEngine } = await import('./keep-alive/thread.js')
    return threadEngine(settings)
  } catch (error) {
    throw new InvalidError("keepAlive: 'worker' needs Node's worker threads", {
      cause: error,
      hint: "write keepAlive: 'main'",
    })
  }
}

function httpEngine(urls: readonly string[], { tls, apiKey, keepAlive }: LocksOptions): Engine {
  if (tls !== undefined) {
    throw new InvalidError("tls does not work with transport: 'http', which uses the runtime's fetch", {
      hint: 'give the certificates to the runtime: NODE_EXTRA_CA_CERTS=ca.pem',
    })
  }
  if (keepAlive === 'worker') {
    throw new InvalidError("keepAlive: 'worker' does not work with transport: 'http'", {
      hint: "write transport: 'stream'",
    })
  }
  const fetch: Fetch = (url, init) => globalFetch(url, init as RequestInit)
  return new HttpEngine({ urls, fetch, ...(apiKey === undefined ? {} : { apiKey }) })
}

/** Captured when this module loads, like the timers of the client. */
const globalFetch = globalThis.fetch

const TLS_KEYS: readonly string[] = ['ca', 'cert', 'key', 'passphrase', 'servername', 'rejectUnauthorized']

function checkOptions(options: LocksOptions): LocksOptions {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidError("the options of createLocks are an object, such as { ttl: '10s' }")
  }
  oneOf('transport', options.transport, ['stream', 'http'])
  oneOf('keepAlive', options.keepAlive, ['main', 'worker'])
  const { tls } = options
  if (tls === undefined) return options
  if (typeof tls !== 'object' || tls === null) {
    throw new InvalidError('tls is an object', { hint: "write tls: { ca: readFileSync('ca.pem') }" })
  }
  for (const key of Object.keys(tls)) {
    if (TLS_KEYS.includes(key)) continue
    throw new InvalidError(`tls has no option ${JSON.stringify(key)}`, { hint: `it has ${TLS_KEYS.join(', ')}` })
  }
  return options
}

function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (value === undefined || known.includes(value as string)) return
  const allowed = known.map((one) => `'${one}'`).join(' or ')
  throw new InvalidError(`${option} is ${allowed}, not ${JSON.stringify(value)}`, {
    hint: `write ${option}: '${known[0]}'`,
  })
}
