import { UnavailableError } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { settle } from './support/platform.js'
import { suite } from './support/suite.js'

const at = suite()

/** Cases from the field that no other test has: see docs/internals/field-cases.md. */
describe('cases from the field', () => {
  it('a release that races a renewal releases, and the renewal revives nothing', async () => {
    const { service } = at
    const locks = service.client({ ttl: '3s' })
    const hold = await service.during(locks.acquire('a'))
    service.network.holdBack = true
    await service.platform.advance(1_050)
    const released = hold.release()
    await settle()
    service.network.flush()
    expect(await service.during(released)).toEqual({ released: true })
    expect(hold.state).toBe('released')
    const other = service.client({}, { network: service.line() })
    expect(await service.during(other.tryAcquire('a'))).not.toBeNull()
  })

  it('waiting for long keeps nothing per attempt: no timers, no listeners, no messages pile up', async () => {
    const { service } = at
    const locks = service.client({ ttl: '3s' })
    const controller = new AbortController()
    const holder = service.client({}, { network: service.line() })
    await service.during(holder.acquire('a'))
    const waiting = locks
      .acquire('a', { wait: Number.POSITIVE_INFINITY, signal: controller.signal })
      .catch((e: unknown) => e)
    await service.platform.advance(60_000)
    const { timers } = service.platform
    const before = service.network.toServer
    await service.platform.advance(3_600_000)
    expect(service.platform.timers).toBeLessThanOrEqual(timers + 1)
    // One renewal a second is all that an hour of waiting costs.
    expect(service.network.toServer - before).toBeLessThan(3_700)
    controller.abort()
    await service.during(waiting)
  })

  it('a wrong or dead address is unreachable, with its cause, and is never taken for a lock that is not free', async () => {
    const { service } = at
    service.network.down.add(service.url)
    const locks = service.client({ connectTimeout: '1s' })
    const error = await service.during(locks.tryAcquire('a').catch((thrown: unknown) => thrown))
    expect(error).toBeInstanceOf(UnavailableError)
    expect((error as Error).message).toContain(service.url)
    expect((error as UnavailableError).cause).toBeInstanceOf(Error)
  })
})
