import { HoldLostError, splitToken } from '@leasehold/core'
import { beforeEach, describe, expect, it } from 'vitest'
import { settle } from '../support/platform.js'
import { TestService } from '../support/service.js'
import { suite } from '../support/suite.js'

const current = suite()
let service: TestService
beforeEach(() => {
  service = current.service
})

/** A hold of `a` with a TTL of 10 s and a margin of 1 s, taken at elapsed time 0. */
async function held(options = {}) {
  const locks = service.client()
  const hold = await service.during(locks.acquire('a', { ttl: '10s', ...options }), 1)
  return { locks, hold }
}

describe('the deadline is checked synchronously', () => {
  it('after a blocked event loop, before any timer had its turn', async () => {
    const { hold } = await held()
    service.platform.block(9_500)
    expect(() => hold.assertHeld()).toThrow(HoldLostError)
    expect(hold.state).toBe('lost')
    expect(hold.signal.aborted).toBe(true)
  })

  it('by every member: state, remaining, signal, lost, release', async () => {
    for (const look of ['state', 'remaining', 'signal', 'lost', 'release', 'assertHeld', 'serialize'] as const) {
      const fresh = new TestService()
      const hold = await fresh.during(fresh.client().acquire('a', { ttl: '10s' }), 1)
      const { signal } = hold
      fresh.platform.block(9_500)
      expect(signal.aborted).toBe(false)
      try {
        const value: unknown = hold[look]
        if (typeof value === 'function') value.call(hold)
      } catch (error) {
        expect(error).toBeInstanceOf(HoldLostError)
      }
      expect(signal.aborted).toBe(true)
      await fresh.end()
    }
  })

  it('after a suspend, in which the monotonic clock stood still', async () => {
    const { hold } = await held()
    service.platform.suspend(9_500)
    expect(hold.state).toBe('lost')
  })

  it('and a wall clock that is set back does not prolong a hold', async () => {
    const { hold } = await held()
    service.network.blackHole = true
    service.platform.wall -= 3_600_000
    service.platform.block(8_990)
    expect(hold.state).toBe('held')
    service.platform.block(20)
    expect(hold.state).toBe('lost')
  })

  it('a suspend after the wall clock was set back counts all the same', async () => {
    const { hold } = await held()
    service.platform.wall -= 3_600_000
    await service.platform.advance(1_500)
    service.platform.suspend(9_500)
    expect(hold.state).toBe('lost')
  })

  it('frequent checks do not make time run faster', async () => {
    const { hold } = await held()
    service.network.blackHole = true
    const before = hold.remaining()
    for (let i = 0; i < 5_000; i++) {
      // The clocks tick at different instants, as real ones do.
      service.platform.mono += 0.5
      if (i % 2 === 1) service.platform.wall += 1
      hold.remaining()
    }
    expect(before - hold.remaining()).toBeGreaterThanOrEqual(2_500)
    expect(before - hold.remaining()).toBeLessThan(2_550)
  })

  it('before an end that the service reports late: the deadline came first', async () => {
    const { hold } = await held()
    const view = await service.during(service.client().query())
    const session = splitToken(view.sessions[0]?.id ?? 0n).serial
    service.network.holdBack = true
    service.member.submit({ kind: 'closeSession', session, by: 'operator', reason: '' }, () => {})
    await settle()
    service.platform.block(9_500)
    service.network.flush()
    await settle()
    expect(await hold.lost).toMatchObject({ reason: 'deadline' })
  })

  it('a reply that arrives after a blocked loop does not revive the hold', async () => {
    const { hold } = await held()
    service.network.holdBack = true
    await service.platform.advance(3_400)
    service.platform.block(6_000)
    // The renewal's answer was there all the time; it is read before any timer has its turn.
    service.network.flush()
    await settle()
    expect(hold.state).toBe('lost')
  })
})
