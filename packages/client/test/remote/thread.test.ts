import { setMaxListeners } from 'node:events'
import { HoldLostError, UnavailableError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { createLocksOn, EngineHost, ProtocolEngine, RemoteEngine } from '../../src/index.js'
import { SharedLease } from '../../src/remote/shared-lease.js'
import { settle } from '../support/platform.js'
import { suite } from '../support/suite.js'
import { portPair } from '../support/threads.js'

const at = suite()

function client() {
  const { platform, network, url, during } = at.service
  const ports: ReturnType<typeof portPair>[0][] = []
  const engines: ProtocolEngine[] = []
  const remote = new RemoteEngine({
    name: url,
    capabilities: new ProtocolEngine({ urls: [url], connector: network, platform }).capabilities,
    platform,
    sharedClockMs: () => platform.mono,
    openPort: () => {
      const [near, far] = portPair()
      const engine = new ProtocolEngine({ urls: [url], connector: network, platform })
      new EngineHost(engine, far, { platform, sharedClockMs: () => platform.mono })
      ports.push(near)
      engines.push(engine)
      return near
    },
  })
  const locks = createLocksOn(remote, { ttl: '3s', connectTimeout: '2s' }, { platform })
  const stop = async () => {
    await during.call(at.service, locks.close())
    for (const engine of engines) await engine.close()
  }
  return { locks, ports, engines, remote, stop }
}

describe('the thread of the connection', () => {
  it('that dies loses its holds, and the next call starts another one', async () => {
    const { locks, ports, engines, remote, stop } = client()
    const hold = await at.service.during(locks.acquire('a'))
    const waiting = locks.acquire('a')
    const asked = locks.query().catch((error: unknown) => error)
    await engines[0]?.close()
    ports[0]?.die()
    expect(hold.state).toBe('lost')
    expect(await hold.lost).toBeInstanceOf(HoldLostError)
    expect(await asked).toBeInstanceOf(UnavailableError)
    expect(remote.status.state).toBe('connecting')
    // A wait is retried on another session, when the old one has expired at the service.
    const next = await at.service.during(waiting)
    expect(ports).toHaveLength(2)
    expect(next.token).toBeGreaterThan(hold.token)
    await stop()
  })

  it('an aborted wait leaves nothing behind on either side', async () => {
    const { locks, stop } = client()
    const first = await at.service.during(locks.acquire('a'))
    const controller = new AbortController()
    const second = locks.acquire('a', { signal: controller.signal }).catch((error: unknown) => error)
    await at.service.platform.advance(50)
    controller.abort(new Error('changed my mind'))
    expect(await at.service.during(second)).toMatchObject({ name: 'AbortError', cause: { message: 'changed my mind' } })
    await at.service.during(first.release())
    await settle()
    expect((await at.service.during(locks.query({ name: 'a' }))).held).toEqual([])
    await stop()
  })

  it('errors keep their class, hint and version on the way', async () => {
    const { locks, stop } = client()
    const hold = await at.service.during(locks.acquire('a'))
    await expect(at.service.during(locks.acquire('a', { wait: 0 }))).rejects.toMatchObject({ code: 'busy' })
    const { version } = await at.service.during(locks.register('r').put(1))
    const conflict = at.service.during(locks.register('r').put(2, { ifVersion: 0n }))
    await expect(conflict).rejects.toMatchObject({ code: 'version-conflict', version })
    await at.service.during(hold.release())
    await stop()
  })
})

describe('a lease in shared memory', () => {
  it('counts the larger of the two clocks, and reports why it ended', () => {
    const writer = new SharedLease()
    const reader = new SharedLease(writer.buffer)
    writer.acknowledged(1_000, 50_000)
    expect(reader.sinceAcknowledgedMs(1_200, 50_100)).toBe(200)
    expect(reader.sinceAcknowledgedMs(1_200, 53_000)).toBe(3_000)
    expect(reader.sinceAcknowledgedMs(1_200, 40_000)).toBe(200)
    const before = reader.renewals
    writer.acknowledged(1_300, 50_300)
    expect(reader.renewals).not.toBe(before)
    expect(reader.ended).toBeUndefined()
    writer.end('epoch-changed')
    expect(reader.ended).toBe('epoch-changed')
    writer.congested = true
    expect(reader.congested).toBe(true)
  })
})

describe('a crowded session', () => {
  it('is used again when it has room, also after cancels', async () => {
    const { locks, stop } = client()
    const { service } = at
    await service.during(locks.acquire('x'))
    for (let round = 0; round < 3; round++) {
      const controller = new AbortController()
      setMaxListeners(0, controller.signal)
      const waits = Array.from({ length: 449 }, () => locks.acquire('x', { signal: controller.signal }))
      await service.platform.advance(20)
      await service.during(Promise.all(Array.from({ length: 60 }, (_, i) => locks.request(`a/${i}`, () => i))))
      controller.abort()
      await service.during(Promise.allSettled(waits))
      await service.platform.advance(200)
    }
    // One that was crowded, and one beside it.
    expect(service.member.state.machine.sessions.size).toBeLessThanOrEqual(2)
    await stop()
  })

  it('sends acquires, writes and adoptions to another one', async () => {
    const { locks, stop } = client()
    const { service } = at
    const other = service.client()
    await service.during(other.acquire('x'))
    const texts: string[] = []
    for (let i = 0; i < 100; i++)
      texts.push((await service.during(other.acquire(`p/${i}`, { portable: true }))).serialize())
    const waiting = locks.acquire('x', { wait: Number.POSITIVE_INFINITY })
    waiting.catch(() => {})
    await service.during(Promise.all(Array.from({ length: 150 }, (_, i) => locks.request(`a/${i}`, () => i))))
    const acquires = Array.from({ length: 300 }, (_, i) => locks.acquire(`b/${i}`))
    const writes = Array.from({ length: 100 }, (_, i) => locks.register(`r/${i}`).put(i))
    const adoptions = texts.map((text) => locks.adopt(text))
    const done = await service.during(Promise.all([...acquires, ...writes, ...adoptions]))
    expect(done).toHaveLength(500)
    await stop()
  })
})
