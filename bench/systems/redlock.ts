import { createRequire } from 'node:module'
import { startRedis as startServer } from '../../tests/services/redis.js'
import { Redis } from 'ioredis'
import type { System } from '../harness/comparison.js'
import { subjects } from './engines/postgres.js'
import { startAll } from './peer.js'

const SERVERS = 5
const TTL_MS = 30_000
const RETRY_MS = 10

interface RedlockLike {
  acquire(names: string[], ttlMs: number): Promise<{ release(): Promise<unknown> }>
}
type RedlockClass = new (clients: Redis[], settings: Record<string, number>) => RedlockLike

/** The published package over five servers that flush every write. */
export async function startRedlock(): Promise<System> {
  // Its types do not say that it is CommonJS.
  const { default: Redlock } = createRequire(import.meta.url)('redlock') as { default: RedlockClass }
  const servers = await startAll(Array.from({ length: SERVERS }, () => () => startServer({ appendfsync: 'always' })))
  const clients = servers.systems.map(({ url }) => new Redis(url, { enableAutoPipelining: true }))
  for (const client of clients) client.on('error', () => {})
  const redlock = new Redlock(clients, { retryCount: -1, retryDelay: RETRY_MS, retryJitter: RETRY_MS })
  const { distinct, oneName } = subjects('redlock over five Redis', async (name) => {
    const lock = await redlock.acquire([name], TTL_MS)
    return () => lock.release()
  })
  return {
    distinct,
    oneName,
    async stop() {
      for (const client of clients) client.disconnect()
      await servers.stop()
    },
  }
}
