import { ALL_CAPABILITIES } from '@leasehold/client'
import { createLocks } from 'leasehold'
import { startEtcd, startEtcdCluster } from '../../services/etcd.js'
import { Proxy } from '../../services/proxy.js'
import type { Fixture, RunningEngine } from '../fixture.js'

/** etcd makes leases of two seconds at least, whole seconds, and looks for dead ones twice a second. */
const base = {
  capabilities: ALL_CAPABILITIES,
  shortestTtlMs: 2_000,
  expirySlackMs: 3_000,
  line: true,
  needs: 'etcd',
} as const

export const etcd: Fixture = {
  ...base,
  name: '`etcd://`, one member',
  start: async () => {
    const service = await startEtcd()
    return behindProxies([service.port], () => service.stop())
  },
}

export const etcdCluster: Fixture = {
  ...base,
  name: '`etcd://`, three members',
  start: async () => {
    const cluster = await startEtcdCluster(3)
    return behindProxies(
      cluster.members.map(({ port }) => port),
      () => cluster.stop(),
    )
  },
}

async function behindProxies(ports: readonly number[], stop: () => Promise<void>): Promise<RunningEngine> {
  const proxies = await Promise.all(ports.map((port) => Proxy.start(port)))
  const url = (list: readonly number[]) => `etcd://${list.map((port) => `127.0.0.1:${port}`).join(',')}`
  const [direct, through] = [url(ports), url(proxies.map(({ port }) => port))]
  const each = (action: (proxy: Proxy) => void) => () => proxies.forEach(action)
  return {
    client: (options) => createLocks(direct, options),
    line: {
      client: (options) => createLocks(through, options),
      mute: each((proxy) => proxy.mute()),
      shut: each((proxy) => proxy.shut()),
      open: each((proxy) => proxy.open()),
    },
    stop: async () => {
      await stop()
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()))
    },
  }
}
