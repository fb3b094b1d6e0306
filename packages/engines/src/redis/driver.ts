import { createHash } from 'node:crypto'
import { AccessError, InvalidError, LeaseholdError, UnavailableError } from '@leasehold/core'

/** What is asked of a Redis, whatever the driver. */
export interface RedisPort {
  /** Runs a script on one key. */
  run(script: string, key: string, args: readonly string[]): Promise<unknown>
  /** Messages of a channel, until the returned function is called. Rejects while there is no connection. */
  subscribe(channel: string, listener: () => void): Promise<() => void>
  /** Connects, or rejects. */
  connect(): Promise<void>
  /** Replaces connections that have gone silent, with their subscriptions. What is in flight on them fails. */
  reconnect(): void
  close(): void
}

/** The module of `ioredis` or of `redis` (node-redis), as `import * as driver from …` gives it. */
export type RedisDriver = IoredisModule | NodeRedisModule

interface IoredisModule {
  readonly Redis: new (url: string, options: Readonly<Record<string, unknown>>) => IoredisClient
}

interface NodeRedisModule {
  readonly createClient: (options: Readonly<Record<string, unknown>>) => NodeRedisClient
}

interface IoredisClient {
  eval(script: string, keys: number, ...args: string[]): Promise<unknown>
  evalsha(sha: string, keys: number, ...args: string[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(): void
  duplicate(): IoredisClient
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'message', listener: (channel: string) => void): unknown
}

interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  subscribe(channel: string, listener: () => void): Promise<unknown>
  unsubscribe(channel: string, listener?: () => void): Promise<unknown>
  connect(): Promise<unknown>
  destroy?(): void
  disconnect?(): Promise<unknown>
  duplicate(): NodeRedisClient
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Pauses between attempts of a driver to connect again. */
const RECONNECT_MIN_MS = 50
const RECONNECT_MAX_MS = 2_000

const reconnectMs = (attempt: number): number => Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * attempt)

/** A connection by the driver that was handed in, or by the one that is installed. */
export async function redisPort(url: string, driver: RedisDriver | undefined, timeoutMs: number): Promise<RedisPort> {
  const module = driver ?? (await installed())
  if ('Redis' in module && typeof module.Redis === 'function') return ioredisPort(module, url, timeoutMs)
  if ('createClient' in module && typeof module.createClient === 'function')
    return nodeRedisPort(module, url, timeoutMs)
  throw new InvalidError('this is no driver for Redis', { hint: "the module 'ioredis' or 'redis'" })
}

async function installed(): Promise<RedisDriver> {
  let cause: unknown
  for (const name of ['ioredis', 'redis']) {
    try {
      return (await import(name)) as RedisDriver
    } catch (error) {
      cause = error
    }
  }
  throw new InvalidError("redis://… needs the driver 'ioredis' or 'redis', and neither is installed", {
    cause,
    hint: 'npm install ioredis',
  })
}

function ioredisPort({ Redis }: IoredisModule, url: string, timeoutMs: number): RedisPort {
  const listeners = new Map<string, () => void>()
  const make = () => {
    const client = new Redis(url, {
      lazyConnect: true,
      // A command fails while there is no connection, instead of waiting for one without an end.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      connectTimeout: timeoutMs,
      retryStrategy: reconnectMs,
    })
    const listening = client.duplicate()
    // Every failure reaches the command that it belongs to.
    for (const one of [client, listening]) one.on('error', () => {})
    listening.on('message', (channel) => listeners.get(channel)?.())
    return { client, listening }
  }
  const end = (pair: ReturnType<typeof make>) => {
    pair.client.disconnect()
    pair.listening.disconnect()
  }
  let pair = make()
  let closed = false
  return {
    run: (script, key, args) => {
      const { client } = pair
      return once(
        (sha) => client.evalsha(sha, 1, key, ...args),
        () => client.eval(script, 1, key, ...args),
        script,
      )
    },
    async subscribe(channel, listener) {
      listeners.set(channel, listener)
      await pair.listening.subscribe(channel)
      return () => {
        listeners.delete(channel)
        pair.listening.unsubscribe(channel).catch(() => {})
      }
    },
    async connect() {
      await Promise.all([pair.client.connect(), pair.listening.connect()])
    },
    reconnect() {
      if (closed) return
      end(pair)
      const { client, listening } = (pair = make())
      client.connect().catch(() => {})
      listening
        .connect()
        .then(() => Promise.all([...listeners.keys()].map((channel) => listening.subscribe(channel))))
        .catch(() => {})
    },
    close() {
      closed = true
      end(pair)
    },
  }
}

function nodeRedisPort({ createClient }: NodeRedisModule, url: string, timeoutMs: number): RedisPort {
  const listeners = new Map<string, () => void>()
  const make = () => {
    const socket = { connectTimeout: timeoutMs, reconnectStrategy: reconnectMs }
    const client = createClient({ url, socket, disableOfflineQueue: true })
    const listening = client.duplicate()
    for (const one of [client, listening]) one.on('error', () => {})
    return { client, listening }
  }
  const end = (pair: ReturnType<typeof make>) => {
    for (const one of [pair.client, pair.listening]) {
      try {
        if (one.destroy) one.destroy()
        else void one.disconnect?.().catch(() => {})
      } catch {
        // It was not connected.
      }
    }
  }
  let pair = make()
  let closed = false
  return {
    run: (script, key, args) => {
      const { client } = pair
      const options = { keys: [key], arguments: [...args] }
      return once(
        (sha) => client.evalSha(sha, options),
        () => client.eval(script, options),
        script,
      )
    },
    async subscribe(channel, listener) {
      listeners.set(channel, listener)
      await pair.listening.subscribe(channel, listener)
      return () => {
        listeners.delete(channel)
        pair.listening.unsubscribe(channel, listener).catch(() => {})
      }
    },
    async connect() {
      await Promise.all([pair.client.connect(), pair.listening.connect()])
    },
    reconnect() {
      if (closed) return
      end(pair)
      const { client, listening } = (pair = make())
      client.connect().catch(() => {})
      listening
        .connect()
        .then(() => Promise.all([...listeners].map(([channel, listener]) => listening.subscribe(channel, listener))))
        .catch(() => {})
    },
    close() {
      closed = true
      end(pair)
    },
  }
}

const digests = new Map<string, string>()

/** Runs a script by its digest, and sends the source only to a server that does not know it. */
async function once(
  short: (sha: string) => Promise<unknown>,
  whole: () => Promise<unknown>,
  script: string,
): Promise<unknown> {
  let sha = digests.get(script)
  if (sha === undefined) {
    sha = createHash('sha1').update(script).digest('hex')
    digests.set(script, sha)
  }
  try {
    return await short(sha)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return whole()
  }
}

/** The typed error for an error of the driver or the server. */
export function errorOfRedis(error: unknown, what: string): LeaseholdError {
  if (error instanceof LeaseholdError) return error
  const message = error instanceof Error ? error.message : String(error)
  const text = `Redis: ${what}: ${message}`
  if (/^(NOAUTH|WRONGPASS)/.test(message)) return new AccessError(text, { code: 'unauthenticated', cause: error })
  if (message.startsWith('NOPERM')) return new AccessError(text, { code: 'forbidden', cause: error })
  if (message.includes('WRONGTYPE')) {
    return new InvalidError(text, { cause: error, hint: 'the key is used for something else: choose another prefix' })
  }
  return new UnavailableError(text, { cause: error, hint: 'says nothing about the holder of a lock' })
}
