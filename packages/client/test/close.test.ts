import { AbortedError } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import type { TestService } from './support/service.js'
import { suite } from './support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

describe('close', () => {
  it('ends waits, holds and sessions at once, and rejects everything afterwards', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.platform.advance(10)
    await service.during(locks.close())
    expect(await waiting).toBeInstanceOf(AbortedError)
    expect(await hold.lost).toMatchObject({ reason: 'closed' })
    expect(locks.status).toEqual({ state: 'closed' })
    expect(service.member.state.machine.sessions.size).toBe(0)
    for (const call of [
      () => locks.acquire('b'),
      () => locks.query(),
      () => locks.connect(),
      () => locks.register('r').put(1),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(AbortedError)
    }
    await locks.close()
  })

  it('a hold stops being held before its close is sent', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const sent = service.network.toServer
    const closing = locks.close()
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
    if (service.network.toServer > sent) expect(hold.state).toBe('lost')
    await service.during(closing)
    expect(hold.state).toBe('lost')
  })

  it('drain waits for the holds, and admits no new acquires', async () => {
    const locks = service.client()
    let finish: () => void = () => {}
    const work = locks.request('a', () => new Promise<number>((resolve) => (finish = () => resolve(7))))
    await service.platform.advance(10)
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.platform.advance(10)
    const closing = locks.close({ drain: '10s' })
    await service.platform.advance(3_000)
    expect(await waiting).toBeInstanceOf(AbortedError)
    await expect(locks.acquire('b')).rejects.toBeInstanceOf(AbortedError)
    expect(service.member.state.machine.holds.size).toBe(1)
    finish()
    expect(await service.during(work)).toBe(7)
    await service.during(closing)
  })

  it('drain ends after its time', async () => {
    const locks = service.client()
    const hold = await service.during(locks.acquire('a'))
    const start = service.platform.mono
    await service.during(locks.close({ drain: '5s' }))
    expect(service.platform.mono - start).toBeLessThan(5_100)
    expect(await hold.lost).toMatchObject({ reason: 'closed' })
  })

  it('of a client that was never used connects to nothing', async () => {
    const locks = service.client()
    await locks.close()
    expect(service.network.connects).toEqual([])
  })

  it('does not hang while the service is unreachable', async () => {
    const locks = service.client({ connectTimeout: '2s' })
    await service.during(locks.acquire('a'))
    service.network.down.add(service.url)
    service.network.cutAll()
    const start = service.platform.mono
    await service.during(locks.close())
    expect(service.platform.mono - start).toBeLessThan(2_500)
  })

  it('is bounded, whatever is open and however long a connection may take', async () => {
    const locks = service.client({ connectTimeout: '60s' })
    await service.during(locks.acquire('a'))
    service.network.down.add(service.url)
    service.network.cutAll()
    const opening = locks.acquire('b', { ttl: '30s' }).catch((error: unknown) => error)
    const start = service.platform.mono
    await service.during(locks.close())
    expect(service.platform.mono - start).toBeLessThan(5_100)
    expect(await opening).toBeInstanceOf(AbortedError)
  })

  it('leaves no session behind that was being opened', async () => {
    const locks = service.client()
    const waiting = locks.acquire('a').catch((error: unknown) => error)
    await service.during(locks.close())
    expect(await waiting).toBeInstanceOf(AbortedError)
    await service.platform.advance(20_000)
    expect(service.member.state.machine.sessions.size).toBe(0)
  })
})
