import type { ApproximateLocks, ApproximateOptions } from '@leasehold/engines/redis'

export type {
  ApproximateCallOptions,
  ApproximateLock,
  ApproximateLocks,
  ApproximateOptions,
} from '@leasehold/engines/redis'

/**
 * Returns a client for approximate locks in one Redis, with the driver `ioredis` or `redis`. Approximate locks avoid duplicate
 * work; they protect nothing: they have no token, and no guard accepts them.
 *
 * @throws InvalidError for an invalid URL or option; UnavailableError when Redis cannot be reached
 * @example
 * const cache = await connectApproximate('redis://127.0.0.1:6379')
 * await cache.request('report/2026-11', async (lock) => { … })
 */
export async function connectApproximate(url: string, options: ApproximateOptions = {}): Promise<ApproximateLocks> {
  const redis = await import('@leasehold/engines/redis')
  return redis.connectApproximate(url, options)
}
