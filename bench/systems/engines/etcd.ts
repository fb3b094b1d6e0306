import { createLocks } from 'leasehold'
import type { System } from '../../harness/comparison.js'
import { cheapestLock, npmLock, startEtcdMembers } from '../etcd.js'

const MEMBERS = 3

/** Ours on an etcd of three members; the cheapest fair lock that etcd3 can be made to do; and the `lock()` that it has. */
export async function etcdSystems(): Promise<readonly System[]> {
  const { hosts, client, stop } = await startEtcdMembers(MEMBERS)
  const locks = createLocks(`etcd://${hosts.join(',')}`, {
    ttl: '30s',
    wait: Number.POSITIVE_INFINITY,
    clientName: 'bench',
  })
  const pair = async (name: string) => {
    const start = performance.now()
    const hold = await locks.acquire(name)
    const granted = performance.now()
    await hold.release()
    return { whole: performance.now() - start, wait: granted - start }
  }
  const idle = async (): Promise<void> => {}
  return [
    {
      distinct: { system: 'leasehold', pair: async (task) => (await pair(`bench/${task}`)).whole },
      oneName: { system: 'leasehold', pair: async () => (await pair('bench/one')).wait },
      stop: () => locks.close(),
    },
    { ...(await cheapestLock(client, 'cheapest lock on etcd3')), stop: idle },
    { ...npmLock(client), stop },
  ]
}
