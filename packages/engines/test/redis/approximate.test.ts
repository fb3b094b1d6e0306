import { setTimeout as sleep } from 'node:timers/promises'
import {
  AbortedError,
  AcquireTimeoutError,
  BusyError,
  HoldLostError,
  InvalidError,
  UnavailableError,
} from '@leasehold/core'
import { fence } from '@leasehold/fence/pg'
import * as ioredis from 'ioredis'
import * as nodeRedis from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Proxy } from '../../../../tests/services/proxy.js'
import type { Service } from '../../../../tests/services/process.js'
import { startRedis } from '../../../../tests/services/redis.js'
import { describeWith } from '../../../../tests/services/suite.js'
import {
  type ApproximateLock,
  type ApproximateLocks,
  type ApproximateOptions,
  connectApproximate,
} from '../../src/redis.js'

const DRIVERS = { ioredis, redis: nodeRedis as unknown as ApproximateOptions['driver'] }

describeWith('Redis', 'approximate locks in Redis', () => {
  let server: Service
  let admin: ioredis.Redis
  const open: ApproximateLocks[] = []

  beforeAll(async () => {
    server = await startRedis()
    admin = new ioredis.Redis(server.url)
  })
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close()
    await admin.flushall()
  })
  afterAll(async () => {
    admin.disconnect()
    await server.stop()
  })

  const client = async (options: ApproximateOptions = {}, url = server.url): Promise<ApproximateLocks> => {
    const locks = await connectApproximate(url, options)
    open.push(locks)
    return locks
  }

  describe.each(Object.entries(DRIVERS))('with the driver %s', (_name, driver) => {
    const options = driver === undefined ? {} : { driver }

    it('leaves connections that have gone silent, and keeps its locks', async () => {
      await using proxy = await Proxy.start(server.port)
      const locks = await client({ ...options, ttl: '4s' }, `redis://127.0.0.1:${proxy.port}`)
      const lock = await locks.acquire('kept')
      const other = await (await client(options)).acquire('released')
      const waiting = locks.acquire('released')
      await sleep(200)
      proxy.freeze()
      const began = performance.now()
      await locks.acquire('next')
      // A quarter of the TTL, and a new connection.
      expect(performance.now() - began).toBeLessThan(2_000)
      await other.release()
      expect((await waiting).state).toBe('held')
      await sleep(4_000)
      expect(lock.state).toBe('held')
      await locks.close()
    })

    it('has one holder at a time, in one process and in several', async () => {
      const clients = await Promise.all([client(options), client(options)])
      let inside = 0
      let most = 0
      const task = async (locks: ApproximateLocks) => {
        for (let i = 0; i < 10; i++) {
          await locks.request('a', async () => {
            most = Math.max(most, ++inside)
            await sleep(1)
            inside--
          })
        }
      }
      await Promise.all(clients.flatMap((locks) => [task(locks), task(locks), task(locks)]))
      expect(most).toBe(1)
      expect(await admin.keys('*')).toEqual([])
    })

    it('learns of a release long before its next attempt', async () => {
      const [one, two] = [await client(options), await client(options)]
      const names = Array.from({ length: 7 }, (_, i) => `heard/${i}`)
      const pairs = await Promise.all(
        names.map(async (name) => ({ held: await one.acquire(name), waiting: two.acquire(name) })),
      )
      // By now half a second and more passes between two attempts.
      await sleep(2_500)
      const tookMs: number[] = []
      for (const { held, waiting } of pairs) {
        const start = performance.now()
        await held.release()
        await waiting
        tookMs.push(performance.now() - start)
        await sleep(100)
      }
      // The one in the middle: a busy machine may hold up some of them.
      expect(tookMs.toSorted((a, b) => a - b)[3]).toBeLessThan(150)
    })

    it('extends its own lock, and no other', async () => {
      const locks = await client({ ...options, ttl: '2s' })
      const lock = await locks.acquire('a')
      await sleep(3_000)
      expect(lock.state).toBe('held')
      await admin.set('leasehold:approximate:a', 'another value')
      expect((await lock.lost)?.reason).toBe('expired')
      expect(lock.signal.reason).toBeInstanceOf(HoldLostError)
      expect(() => lock.assertHeld()).toThrow(HoldLostError)
      expect(await lock.release()).toEqual({ released: false })
      expect(await admin.get('leasehold:approximate:a')).toBe('another value')
    })
  })

  it('never waits without a wait', async () => {
    const [one, two] = [await client(), await client()]
    const lock = await one.acquire('a')
    expect(await two.tryAcquire('a')).toBeNull()
    expect(await one.tryAcquire('a')).toBeNull()
    await expect(two.acquire('a', { wait: 0 })).rejects.toBeInstanceOf(BusyError)
    await expect(two.acquire('a', { wait: '300ms' })).rejects.toBeInstanceOf(AcquireTimeoutError)
    const waiting = two.acquire('a', { signal: AbortSignal.timeout(100) })
    await expect(waiting).rejects.toBeInstanceOf(AbortedError)
    await lock.release()
    const again = await two.tryAcquire('a')
    expect(again?.remaining()).toBeGreaterThan(8_000)
  })

  it('passes on the lock of a dead holder when its lease ends', async () => {
    const start = performance.now()
    await admin.set('leasehold:approximate:a', 'gone', 'PX', 1_000)
    await (await client()).acquire('a')
    expect(performance.now() - start).toBeGreaterThan(990)
  })

  it('loses by its own clock when Redis does not answer, and does not run into others afterwards', async () => {
    await using proxy = await Proxy.start(server.port)
    const url = `redis://127.0.0.1:${proxy.port}`
    const locks = await client({ ttl: '2s', connectTimeout: '1s' }, url)
    const lock = await locks.acquire('a')
    const other = (await client()).acquire('a')
    proxy.mute()
    expect((await lock.lost)?.reason).toBe('deadline')
    const next = await other
    proxy.open()
    await sleep(500)
    expect(next.state).toBe('held')
    await expect(locks.acquire('b', { wait: '20s' })).resolves.toBeDefined()
  })

  it('reports unreachable, not busy, when Redis is unreachable; and acquires nothing twice after a lost answer', async () => {
    await using proxy = await Proxy.start(server.port)
    const locks = await client({ connectTimeout: '1s' }, `redis://127.0.0.1:${proxy.port}`)
    proxy.mute()
    const waiting = locks.acquire('a', { wait: '30s' })
    await sleep(100)
    proxy.open()
    const lock = await waiting
    expect(lock.state).toBe('held')
    proxy.shut()
    await expect(locks.acquire('b', { wait: '500ms' })).rejects.toBeInstanceOf(UnavailableError)
    await expect(locks.tryAcquire('b')).rejects.toBeInstanceOf(UnavailableError)
    await expect(connectApproximate('redis://127.0.0.1:1')).rejects.toBeInstanceOf(UnavailableError)
  })

  it('returns the value of a body whose lock was lost with the error', async () => {
    const locks = await client()
    const result = locks.request('a', { ttl: '1s' }, async (lock) => {
      await admin.del('leasehold:approximate:a')
      await lock.lost
      return 7
    })
    await expect(result).rejects.toMatchObject({ code: 'lost', result: 7 })
    await expect(locks.request('a', () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    expect(await admin.exists('leasehold:approximate:a')).toBe(0)
  })

  it('rejects a key of another type, and invalid options', async () => {
    await admin.lpush('leasehold:approximate:a', 'x')
    await expect((await client()).acquire('a')).rejects.toBeInstanceOf(InvalidError)
    await expect((await client()).acquire('a', { ttl: 30 })).rejects.toBeInstanceOf(InvalidError)
    await expect(connectApproximate('http://x')).rejects.toBeInstanceOf(InvalidError)
    await expect(connectApproximate(server.url, { driver: {} as never })).rejects.toBeInstanceOf(InvalidError)
  })
})

it('is not a hold: it has no token, and no guard accepts it', () => {
  // Compiled, not run: what must not compile is marked.
  const misuse = async (lock: ApproximateLock) => {
    const guard = fence({} as never)
    // @ts-expect-error: an approximate lock protects nothing
    await guard.with(lock, () => {})
    // @ts-expect-error: it has no token
    return lock.token as bigint
  }
  expect(typeof misuse).toBe('function')
})
