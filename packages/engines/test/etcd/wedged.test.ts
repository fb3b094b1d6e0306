import { setTimeout as sleep } from 'node:timers/promises'
import { createLocksOn } from '@leasehold/client'
import { expect, it } from 'vitest'
import { startEtcd } from '../../../../tests/services/etcd.js'
import { Proxy } from '../../../../tests/services/proxy.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { etcdEngine } from '../../src/etcd.js'

describeWith('etcd', 'a wedged connection to etcd', () => {
  it('is left in time for a renewal over the next one', async () => {
    const server = await startEtcd()
    const proxy = await Proxy.start(server.port)
    const locks = createLocksOn(etcdEngine(`etcd://127.0.0.1:${proxy.port}`), { ttl: '4s' })
    try {
      const hold = await locks.acquire('kept')
      await sleep(300)
      proxy.freeze()
      const began = performance.now()
      await locks.acquire('next')
      expect(performance.now() - began).toBeLessThan(2_500)
      await sleep(5_000)
      expect(hold.state).toBe('held')
    } finally {
      await locks.close()
      await proxy[Symbol.asyncDispose]()
      await server.stop()
    }
  })
})
