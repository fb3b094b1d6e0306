import { StaleTokenError, TOKEN_MAX, UnavailableError } from '@leasehold/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Service } from '../../../tests/services/process.js'
import { startRedis } from '../../../tests/services/redis.js'
import { describeWith } from '../../../tests/services/suite.js'
import { fence } from '../src/redis.js'
import { provesFencing } from '../src/testkit.js'
import { holdOf, holdOfLocks } from './support/holds.js'

describeWith('Redis', 'the guard of Redis', () => {
  let server: Service
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.url)
  })
  afterAll(async () => {
    await redis.quit()
    await server.stop()
  })
  beforeEach(async () => void (await redis.flushall()))
  const guard = () => fence(redis)

  it('accepts at or above the mark, refuses below, and keeps value and mark in one hash', async () => {
    await guard().set(holdOf(33n), 'a')
    await guard().set(holdOf(33n), 'b')
    expect(await guard().get(holdOf(34n))).toBe('b')
    const error = await guard()
      .set(holdOf(33n), 'late')
      .catch((e: unknown) => e)
    expect(error).toBeInstanceOf(StaleTokenError)
    expect(error).toMatchObject({ token: 33n, mark: 34n, resource: 'billing/invoice-42' })
    expect(await redis.hgetall(guard().keyOf('billing/invoice-42'))).toEqual({
      mark: '0000000000000000034',
      kind: 'lock',
      lock: 'billing/invoice-42',
      value: 'b',
    })
    await guard().delete(holdOf(35n))
    expect(await guard().get(holdOf(35n))).toBe(null)
    await expect(guard().set(holdOf(34n), 'late')).rejects.toThrow(StaleTokenError)
  })

  it('compares tokens that a double cannot tell apart', async () => {
    await guard().open(holdOf(9_007_199_254_740_993n))
    await expect(guard().open(holdOf(9_007_199_254_740_992n))).rejects.toThrow(StaleTokenError)
    await guard().open(holdOf(TOKEN_MAX))
  })

  it('keeps a mark for each permit, and refuses the other kind and another lock', async () => {
    const gpu = (token: bigint, slot: number) => holdOf(token, 'gpu', { permits: 2 }, slot)
    await guard().set(gpu(33n, 0), 'zero')
    await guard().set(gpu(34n, 1), 'one')
    expect(await guard().get(gpu(33n, 0))).toBe('zero')
    await guard().open(gpu(35n, 0))
    await expect(guard().open(gpu(33n, 0))).rejects.toThrow(StaleTokenError)
    await expect(guard().open(holdOf(36n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await guard().open(holdOf(36n, 'plain'))
    await expect(guard().open(holdOf(37n, 'plain', { permits: 2 }, 0))).rejects.toMatchObject({ code: 'mismatch' })
    const one = fence(redis, { resource: () => 'one' })
    await one.open(holdOf(33n, 'lock a'))
    await expect(one.open(holdOf(34n, 'lock b'))).rejects.toMatchObject({ code: 'mismatch', message: /lock a/ })
  })

  it('lets shared holds read only, and several locks choose one', async () => {
    const both = holdOfLocks([
      { name: 'a', mode: 'shared', token: 31n },
      { name: 'b', mode: 'exclusive', token: 35n },
    ])
    await expect(guard().get(both)).rejects.toMatchObject({ code: 'invalid' })
    expect(await guard().get(both, { lock: 'a' })).toBe(null)
    await expect(guard().set(both, 'x', { lock: 'a' })).rejects.toMatchObject({ code: 'mismatch' })
    await guard().set(both, 'x', { lock: 'b' })
  })

  it('runs a script of the user in the same step', async () => {
    const key = `${guard().keyOf('list')}:items`
    const push = (token: bigint, item: string) =>
      guard().run(holdOf(token, 'list'), "return redis.call('RPUSH', KEYS[2], ARGV[5])", { keys: [key], args: [item] })
    expect(await push(33n, 'a')).toBe(1)
    await guard().open(holdOf(34n, 'list'))
    await expect(push(33n, 'late')).rejects.toThrow(StaleTokenError)
    expect(await redis.lrange(key, 0, -1)).toEqual(['a'])
  })

  it('refuses what is no token, and says when Redis is not there', async () => {
    await expect(guard().open(holdOf(33 as never))).rejects.toMatchObject({ code: 'invalid' })
    await expect(guard().set(holdOf(33n), 7 as never)).rejects.toMatchObject({ code: 'invalid' })
    const nobody = new Redis({
      port: 1,
      host: '127.0.0.1',
      lazyConnect: true,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
    })
    nobody.on('error', () => {})
    await expect(fence(nobody).open(holdOf(33n))).rejects.toThrow(UnavailableError)
    nobody.disconnect()
  })

  it('is proved by the test kit', async () => {
    const g = guard()
    await provesFencing(
      {
        open: (hold) => g.open(hold),
        read: async (hold) => Number(await g.get(hold)),
        write: (hold, n) => g.set(hold, String(n)),
        remove: (hold) => g.delete(hold),
      },
      { log: () => {} },
    )
  })
})
