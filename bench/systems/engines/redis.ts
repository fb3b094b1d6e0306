import { Redis } from 'ioredis'
import { connectApproximate } from 'leasehold'
import { Mutex } from 'redis-semaphore'
import { startRedis } from '../../../tests/services/redis.js'
import type { System } from '../../harness/comparison.js'
import { subjects } from './postgres.js'

const WAIT_MS = 60_000

/**
 * A Redis, and two ways to lock approximately with it: ours, and `redis-semaphore` as it comes (it asks again every 10 ms).
 */
export async function redisSystems(): Promise<readonly System[]> {
  const server = await startRedis()
  const locks = await connectApproximate(server.url, { wait: WAIT_MS })
  const redis = new Redis(server.url)
  const ours = subjects('leasehold redis://', async (name) => {
    const lock = await locks.acquire(name)
    return () => lock.release()
  })
  const theirs = subjects('redis-semaphore', async (name) => {
    const mutex = new Mutex(redis, name, { acquireTimeout: WAIT_MS })
    await mutex.acquire()
    return () => mutex.release()
  })
  return [
    { ...ours, stop: () => locks.close() },
    {
      ...theirs,
      async stop() {
        redis.disconnect()
        await server.stop()
      },
    },
  ]
}
