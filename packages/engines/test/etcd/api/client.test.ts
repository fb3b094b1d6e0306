import { defaultPlatform, type Engine, type EngineStatus } from '@leasehold/client'
import type { Event } from '@leasehold/core'
import { afterEach, expect, it, vi } from 'vitest'
import { startEtcd, startEtcdCluster } from '../../../../../tests/services/etcd.js'
import { Proxy } from '../../../../../tests/services/proxy.js'
import { describeWith } from '../../../../../tests/services/suite.js'
import { etcdEngine } from '../../../src/etcd.js'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

const SESSION = { ttlMs: 60_000, client: 'test', timeoutMs: 30_000 }
const engines: Engine[] = []

function engine(...args: Parameters<typeof etcdEngine>): Engine {
  const made = etcdEngine(...args)
  engines.push(made)
  return made
}

afterEach(async () => {
  for (const one of engines.splice(0)) await one.close()
})

describeWith('etcd', 'the client of etcd', () => {
  it('breaks no connection because of a caller that had little time left', async () => {
    const cluster = await startEtcdCluster(1)
    try {
      // A clock that is so slow that only the impatient one finds its time over, however busy the machine is.
      const slow = 20
      const platform = {
        ...defaultPlatform,
        monotonicMs: () => defaultPlatform.monotonicMs() / slow,
        after: (delayMs: number, callback: () => void, keepAlive?: boolean) =>
          defaultPlatform.after(delayMs < 500 ? delayMs : delayMs * slow, callback, keepAlive),
      }
      const own = engine(`etcd://127.0.0.1:${cluster.members[0]?.port}`, { platform })
      const statuses: EngineStatus['state'][] = []
      own.onStatus(({ state }) => statuses.push(state))
      const session = await own.openSession(SESSION)
      expect(statuses).toEqual(['connecting', 'connected'])
      await cluster.members[0]?.signal('SIGSTOP')
      // The signal reaches all threads of the process only after a while.
      const health = `http://127.0.0.1:${cluster.members[0]?.port}/health`
      await vi.waitFor(() => expect(fetch(health, { signal: AbortSignal.timeout(500) })).rejects.toThrow(), 30_000)
      const renewed = session.renew(30_000)
      const hasty = own.getRegister('a', { stale: false, timeoutMs: 20 })
      await expect(hasty).rejects.toMatchObject({ code: 'unreachable' })
      await cluster.members[0]?.signal('SIGCONT')
      await renewed
      expect(statuses).toEqual(['connecting', 'connected'])
    } finally {
      await cluster.stop()
    }
  })

  it('that only watches detects a silent member, and continues at the next one', async () => {
    await using service = await startEtcd()
    await using door = await Proxy.start(service.port)
    const writer = await engine(`etcd://127.0.0.1:${service.port}`).openSession(SESSION)
    const put = (key: string) => writer.put({ key, value: Buffer.from('1'), timeoutMs: 30_000 })
    // It begins with the first of its URLs, and all its pauses are a tenth as long.
    const platform = {
      ...defaultPlatform,
      random: () => 0,
      after: (delayMs: number, callback: () => void, keepAlive?: boolean) =>
        defaultPlatform.after(delayMs / 10, callback, keepAlive),
    }
    const watcher = engine(`etcd://127.0.0.1:${door.port},127.0.0.1:${service.port}`, { platform })
    const statuses: EngineStatus[] = []
    watcher.onStatus((status) => statuses.push(status))
    const stop = new AbortController()
    const events: Event[] = []
    const watching = (async () => {
      for await (const { event } of watcher.watch({ prefix: '', signal: stop.signal })) events.push(event)
    })()
    await vi.waitFor(
      async () => {
        await put('before')
        expect(events.length).toBeGreaterThan(0)
      },
      { timeout: 30_000 },
    )
    door.mute()
    await put('meanwhile')
    await vi.waitFor(() => expect(events.at(-1)).toMatchObject({ kind: 'put', key: 'meanwhile' }), { timeout: 60_000 })
    expect(statuses).toContainEqual({ state: 'connected', url: `http://127.0.0.1:${service.port}`, epoch: 1 })
    stop.abort()
    await watching
    const versions = events.map((event) => (event.kind === 'put' ? event.version : 0n))
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => (a < b ? -1 : 1)))
  })
})
