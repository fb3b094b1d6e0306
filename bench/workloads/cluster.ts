import { compare, workloads } from '../harness/comparison.js'
import { startEtcdCluster } from '../systems/etcd.js'
import { startAll } from '../systems/peer.js'
import { startLeaseholdCluster } from '../systems/leasehold.js'

/** Three members in three processes of one machine, all flushes on, beside an etcd of three members. */
export async function cluster(options: { rounds: number; seconds: number }): Promise<void> {
  const { systems, stop } = await startAll([() => startLeaseholdCluster(3), () => startEtcdCluster(3)])
  try {
    await compare(systems, workloads('cluster'), options)
  } finally {
    await stop()
  }
}
