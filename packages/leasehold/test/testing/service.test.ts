import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { EpochChangedError, HoldLostError, UnavailableError } from '../../src/index.js'
import { createTestService, type TestService } from '../../src/testing/index.js'

const run = promisify(execFile)

describe('a service whose time the test moves', () => {
  let service: TestService
  beforeEach(() => {
    service = createTestService()
  })
  afterEach(async () => {
    expect(await service.close()).toEqual({ sessions: 0, connections: 0, timers: 0 })
  })

  test('grants without a change of time, and renews while the time advances', async () => {
    const locks = service.client({ ttl: '10s' })
    const hold = await locks.acquire('a')
    await service.advance('1h')
    expect(hold.state).toBe('held')
    expect(await hold.release()).toEqual({ released: true })
  })

  test('a paused holder loses its lock, detects that when it resumes, and the next holder has a greater token', async () => {
    const [one, two] = [service.client({ ttl: '10s' }), service.client()]
    const hold = await one.acquire('a')
    service.pause(one)
    const next = await service.during(two.acquire('a'))
    expect(next.token).toBeGreaterThan(hold.token)
    await service.resume(one)
    expect(hold.state).toBe('lost')
    expect(await hold.lost).toBeInstanceOf(HoldLostError)
  })

  test('without renewals, a hold is lost by its local deadline, before the service grants the lock again', async () => {
    const [one, two] = [service.client({ ttl: '10s' }), service.client()]
    const hold = await one.acquire('a')
    service.dropRenewals(one)
    await service.advance('8900ms')
    expect(hold.state).toBe('held')
    await service.advance('101ms')
    expect(hold.state).toBe('lost')
    expect(await two.tryAcquire('a')).toBeNull()
    await service.advance('2s')
    expect(await two.tryAcquire('a')).not.toBeNull()
  })

  test('after a blocked event loop, the first check reports the loss', async () => {
    const locks = service.client({ ttl: '10s' })
    const hold = await locks.acquire('a')
    service.block('30s')
    expect(() => hold.assertHeld()).toThrow(HoldLostError)
    // The session was given up here, and ends by its TTL there.
    await service.advance('1s')
  })

  test('repeated and lost replies have no second effect', async () => {
    const locks = service.client()
    service.repeatReplies(locks)
    const first = await locks.acquire('a')
    await first.release()
    service.loseReplies(locks)
    const second = await service.during(locks.acquire('a'))
    const { held, pending } = await locks.query({ name: 'a' })
    expect(held.map((row) => row.id)).toEqual([second.id])
    expect(pending).toEqual([])
  })

  test('simulates an unreachable service, a missing quorum, and a restore', async () => {
    const locks = service.client({ ttl: '2s', connectTimeout: '1s' })
    await locks.acquire('a')
    service.quorum(false)
    await expect(service.during(service.client({ connectTimeout: '1s' }).acquire('b'))).rejects.toBeInstanceOf(
      UnavailableError,
    )
    service.quorum(true)
    service.unreachable(locks)
    await service.advance('3s')
    service.unreachable(locks, false)
    const hold = await service.during(locks.acquire('c'))
    service.restore()
    await service.advance('1s')
    expect((await hold.lost)?.reason).toBe('epoch-changed')
    await expect(service.during(locks.adopt(`leasehold-hold-1.portable.${hold.id}.${'0'.repeat(32)}`))).rejects.toThrow(
      EpochChangedError,
    )
  })
})

describe('with the timers of vitest', () => {
  test('leases follow the fake timers', async () => {
    vi.useFakeTimers()
    const service = createTestService({ framework: true })
    const locks = service.client({ ttl: '10s' })
    const acquiring = locks.acquire('a')
    await vi.advanceTimersByTimeAsync(1)
    const hold = await acquiring
    await vi.advanceTimersByTimeAsync(60_000)
    expect(hold.state).toBe('held')
    service.dropRenewals(locks)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(hold.state).toBe('lost')
    await expect(service.advance('1s')).rejects.toMatchObject({ hint: expect.stringContaining('vi.') })
    const closing = service.close()
    await vi.advanceTimersByTimeAsync(1_000)
    await closing
    vi.useRealTimers()
  })
})

test('works under node:test, with its fake timers and with those of the kit', async () => {
  const file = fileURLToPath(new URL('../support/kit-under-node-test.mjs', import.meta.url))
  const { stdout } = await run(process.execPath, ['--test', file])
  expect(stdout).toMatch(/pass 2\b/)
})
