import { compare, workloads } from './compare.js'
import { startEtcdCluster } from './etcd.js'
import { startLeaseholdCluster } from './service.js'

/** Three members in three processes of one machine, all flushes on, beside an etcd of three members. */
export async function cluster(options: { rounds: number; seconds: number }): Promise<void> {
  const leasehold = await startLeaseholdCluster(3)
  const etcd = await startEtcdCluster(3)
  try {
    await compare([leasehold, etcd], workloads('cluster'), options)
  } finally {
    await leasehold.stop()
    await etcd.stop()
  }
}
