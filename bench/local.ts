import { compare, workloads } from './compare.js'
import { startAll } from './peers/peer.js'
import { startRedis } from './redis.js'
import { startLeasehold } from './service.js'

/**
 * One machine, one client process with one connection, against a service process that flushes every commit, beside a
 * Redis that does the same.
 */
export async function local(options: { rounds: number; seconds: number }): Promise<void> {
  const { systems, stop } = await startAll([() => startLeasehold(), () => startRedis('always')])
  try {
    await compare(
      systems,
      [...workloads('local'), { name: 'local-512-distinct', tasks: 512, pick: 'distinct' }],
      options,
    )
  } finally {
    await stop()
  }
}
