// The entry point that bundlers for browsers use instead of index.ts: the same names, without Node's modules, `ws` and the
// embedded engine.
import {
  createLocksOn,
  type Locks,
  type LocksOptions,
  ProtocolEngine,
  streamUrl,
  type WebSocketLike,
  webSocketConnector,
} from '@leasehold/client'
import { DEFAULT_URL, InvalidError } from '@leasehold/core'

export {
  AbortedError,
  AccessError,
  AcquireTimeoutError,
  BusyError,
  EpochChangedError,
  ExpiredRequestError,
  formatToken,
  HoldLostError,
  InvalidError,
  LeaseholdError,
  LimitError,
  NotHolderError,
  padToken,
  parseToken,
  SessionEndedError,
  StaleTokenError,
  StorageError,
  UnavailableError,
  UnknownOutcomeError,
  VersionConflictError,
  WatchError,
} from '@leasehold/core'
export { VERSION } from './version.js'

export { DEFAULT_URL }

/** Returns the default URL: a browser has no environment variables. */
export function defaultUrl(): string {
  return DEFAULT_URL
}

/**
 * Returns a client that connects on first use, over the browser's own `WebSocket`.
 * @param url of a service, several members by comma; other engines need Node
 * @throws InvalidError
 */
export function createLocks(url: string = defaultUrl(), options: LocksOptions = {}): Locks {
  const urls = String(url)
    .split(',')
    .map((each) => each.trim())
  for (const each of urls) {
    if (!/^https?:\/\//i.test(each)) {
      throw new InvalidError(`in a browser there is no engine for ${JSON.stringify(each.slice(0, 80))}`, {
        hint: "it is 'http://…' or 'https://…' (a service; several members by comma)",
      })
    }
    streamUrl(each)
  }
  const { apiKey, clientName } = options
  const engine = new ProtocolEngine({
    urls,
    connector: webSocketConnector((stream) => new WebSocket(stream) as WebSocketLike),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(clientName === undefined ? {} : { clientName }),
  })
  return createLocksOn(engine, options)
}

/** Returns a client that is connected. @throws UnavailableError, AccessError, InvalidError */
export async function connect(url: string = defaultUrl(), options: LocksOptions = {}): Promise<Locks> {
  const locks = createLocks(url, options)
  try {
    return await locks.connect()
  } catch (error) {
    await locks.close()
    throw error
  }
}

/** Always rejects: a browser cannot reach Redis. @throws InvalidError */
export async function connectApproximate(): Promise<never> {
  throw new InvalidError('in a browser there are no approximate locks: they need a connection to Redis', {
    hint: "the browser's own locks avoid duplicate work, too: navigator.locks.request('name', …)",
  })
}
