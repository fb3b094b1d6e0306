import { createLocks } from 'leasehold'
import { compare, type System, workloads } from './compare.js'
import { cheapestLock, npmLock, startEtcdMembers } from './etcd.js'

interface Options {
  readonly rounds: number
  readonly seconds: number
}

/** Other homes of the lock state, each beside what npm has on the same engine: 64 distinct names, and 64 on one. */
export async function engines(options: Options): Promise<void> {
  await onEtcd(3, options)
}

async function onEtcd(count: number, options: Options): Promise<void> {
  const { hosts, client, stop } = await startEtcdMembers(count)
  const ours = onUrl(`etcd://${hosts.join(',')}`)
  const others = [await cheapestLock(client, 'cheapest lock on etcd3'), npmLock(client)]
  try {
    const list = [ours, ...others.map((subjects) => ({ ...subjects, stop: async () => {} }))]
    await compare(list, contended(`etcd-${count}`), options)
  } finally {
    await ours.stop()
    await stop()
  }
}

/** Our client on an engine. */
export function onUrl(url: string): System {
  const locks = createLocks(url, { ttl: '30s', wait: Number.POSITIVE_INFINITY, clientName: 'bench' })
  const pair = async (name: string) => {
    const start = performance.now()
    const hold = await locks.acquire(name)
    const granted = performance.now()
    await hold.release()
    return { whole: performance.now() - start, wait: granted - start }
  }
  return {
    distinct: { system: 'leasehold', pair: async (task) => (await pair(`bench/${task}`)).whole },
    oneName: { system: 'leasehold', pair: async () => (await pair('bench/one')).wait },
    stop: () => locks.close(),
  }
}

export function contended(place: string) {
  return workloads(place).filter(({ tasks }) => tasks > 1)
}
