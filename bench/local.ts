import { compare, workloads } from './compare.js'
import { startRedis } from './redis.js'
import { startLeasehold } from './service.js'

/**
 * One machine, one client process with one connection, against a service process that flushes every commit, beside a
 * Redis that does the same.
 */
export async function local(options: { rounds: number; seconds: number }): Promise<void> {
  const leasehold = await startLeasehold()
  const redis = await startRedis()
  try {
    await compare([leasehold, redis], workloads('local'), options)
  } finally {
    await leasehold.stop()
    await redis.stop()
  }
}
