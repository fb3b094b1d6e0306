import { compare, workloads } from '../harness/comparison.js'
import { startAll } from '../systems/peer.js'
import { startRedis } from '../systems/redis.js'
import { startLeasehold } from '../systems/leasehold.js'

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
