import { compare, workloads } from './compare.js'
import { startEtcdCluster } from './etcd.js'
import { startAll } from './peers/peer.js'
import { startLeaseholdCluster } from './service.js'

/** Three members in three processes of one machine, all flushes on, beside an etcd of three members. */
export async function cluster(options: { rounds: number; seconds: number }): Promise<void> {
  const { systems, stop } = await startAll([() => startLeaseholdCluster(3), () => startEtcdCluster(3)])
  try {
    await compare(systems, workloads('cluster'), options)
  } finally {
    await stop()
  }
}
