import { StaleTokenError, TOKEN_MAX, UnavailableError } from '@leasehold/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Service } from '../../../tests/services/process.js'
import { startRedis } from '../../../tests/services/redis.js'
import { describeWith } from '../../../tests/services/suite.js'
import { fence, redisLibrary } from '../src/redis.js'
import { provesFencing } from '../src/testkit.js'
import { holdOf, holdOfLocks } from './support/holds.js'
import { proxyTo } from './support/proxy.js'

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

  it('accepts at or above the mark, rejects below, and keeps value and mark in one hash', async () => {
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

  it('compares tokens that are equal as doubles', async () => {
    await guard().open(holdOf(9_007_199_254_740_993n))
    await expect(guard().open(holdOf(9_007_199_254_740_992n))).rejects.toThrow(StaleTokenError)
    await guard().open(holdOf(TOKEN_MAX))
  })

  it('keeps a mark per permit, and rejects the other kind and another lock', async () => {
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
    await expect(one.open(holdOf(34n, 'lock b'))).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/lock a/),
    })
  })

  it('lets shared holds only read, and requires a choice among several locks', async () => {
    const both = holdOfLocks([
      { name: 'a', mode: 'shared', token: 31n },
      { name: 'b', mode: 'exclusive', token: 35n },
    ])
    await expect(guard().get(both)).rejects.toMatchObject({ code: 'invalid' })
    expect(await guard().get(both, { lock: 'a' })).toBe(null)
    await expect(guard().set(both, 'x', { lock: 'a' })).rejects.toMatchObject({ code: 'mismatch' })
    await guard().set(both, 'x', { lock: 'b' })
  })

  it('runs a script of the user in the same atomic step', async () => {
    const key = `${guard().keyOf('list')}:items`
    const push = (token: bigint, item: string) =>
      guard().run(holdOf(token, 'list'), "return redis.call('RPUSH', KEYS[2], ARGV[5])", { keys: [key], args: [item] })
    expect(await push(33n, 'a')).toBe(1)
    await guard().open(holdOf(34n, 'list'))
    await expect(push(33n, 'late')).rejects.toThrow(StaleTokenError)
    expect(await redis.lrange(key, 0, -1)).toEqual(['a'])
  })

  it('rejects invalid tokens, and reports an unreachable Redis', async () => {
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

  it('rejects a key whose mark would expire, and a key of another type', async () => {
    await guard().set(holdOf(33n), 'a')
    await redis.expire(guard().keyOf('billing/invoice-42'), 1_000)
    for (const late of [33n, 34n]) {
      const refused = guard().set(holdOf(late), 'b')
      await expect(refused).rejects.toMatchObject({ code: 'mismatch', hint: expect.stringContaining('PERSIST') })
    }
    await redis.persist(guard().keyOf('billing/invoice-42'))
    await guard().set(holdOf(34n), 'b')
    await redis.set(guard().keyOf('text'), 'x')
    await expect(guard().open(holdOf(33n, 'text'))).rejects.toMatchObject({ code: 'mismatch' })
  })

  it('works by functions where scripts are forbidden', async () => {
    await redis.call('ACL', 'SETUSER', 'noeval', 'on', '>pass', '~*', '+@all', '-eval', '-evalsha')
    const strict = new Redis(server.port, '127.0.0.1', { username: 'noeval', password: 'pass' })
    await expect(fence(strict).open(holdOf(33n))).rejects.toMatchObject({
      code: 'forbidden',
      hint: expect.stringMatching(/functions/),
    })
    const g = fence(strict, { functions: true })
    await redis.call('FUNCTION', 'FLUSH')
    await expect(g.open(holdOf(33n))).rejects.toMatchObject({ code: 'invalid', hint: expect.stringMatching(/install/) })
    await g.install()
    await g.set(holdOf(33n), 'a')
    expect(await g.get(holdOf(34n))).toBe('a')
    await expect(g.set(holdOf(33n), 'late')).rejects.toMatchObject({ code: 'stale-token', mark: 34n })
    await expect(guard().set(holdOf(33n), 'late')).rejects.toThrow(StaleTokenError)
    await g.open(holdOf(9_007_199_254_740_993n))
    await expect(g.open(holdOf(9_007_199_254_740_992n))).rejects.toThrow(StaleTokenError)
    await g.set(holdOf(33n, 'gpu', { permits: 2 }, 0), 'zero')
    await expect(g.open(holdOf(34n, 'gpu'))).rejects.toMatchObject({ code: 'mismatch' })
    await expect(g.run(holdOf(TOKEN_MAX), 'return 1')).rejects.toMatchObject({ code: 'invalid' })
    expect(redisLibrary()).toMatch(/^#!lua name=leasehold_1\n/)
    strict.disconnect()
  })

  it('reports settings by which Redis can lose marks', async () => {
    const settings = async () => (await guard().checkServer()).map(({ setting, value }) => `${setting} ${value}`)
    expect(await settings()).toEqual(['appendonly no'])
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
    expect(await settings()).toEqual(['maxmemory-policy allkeys-lru', 'appendonly no'])
    await expect(guard().checkServer({ strict: true })).rejects.toMatchObject({
      code: 'mismatch',
      message: expect.stringMatching(/allkeys-lru .*appendonly/),
    })
    await redis.config('SET', 'maxmemory-policy', 'noeviction')
    await redis.config('SET', 'appendonly', 'yes')
    expect(await settings()).toEqual(['appendfsync no'])
    await redis.config('SET', 'appendfsync', 'always')
    expect(await guard().checkServer({ strict: true })).toEqual([])
    await redis.config('SET', 'appendonly', 'no')
    await redis.config('SET', 'appendfsync', 'no')
  })

  it('loses the mark by eviction and by FLUSHALL, as its page states', async () => {
    await guard().open(holdOf(34n))
    await redis.flushall()
    await guard().set(holdOf(33n), 'an old holder')
    expect(await guard().get(holdOf(33n))).toBe('an old holder')
  })

  it('reports an unknown outcome if a write may have arrived', async () => {
    const proxy = await proxyTo(server.port)
    const once = { retryStrategy: null, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 } as const
    const connect = async () => {
      const client = new Redis(proxy.port, '127.0.0.1', once)
      client.on('error', () => {})
      await client.ping()
      proxy.cutAfterNextRequest()
      return client
    }
    const writing = await connect()
    await expect(fence(writing).set(holdOf(33n), 'arrived')).rejects.toMatchObject({ code: 'unknown-outcome' })
    await expect.poll(() => guard().get(holdOf(33n))).toBe('arrived')
    const reading = await connect()
    await expect(fence(reading).get(holdOf(33n))).rejects.toMatchObject({ code: 'unreachable' })
    await expect(fence(writing).set(holdOf(33n), 'x')).rejects.toMatchObject({
      code: expect.stringMatching(/unreachable|unknown-outcome/),
    })
    for (const client of [writing, reading]) client.disconnect()
    await proxy.close()
  })

  it('reports a full Redis and a replica', async () => {
    await redis.config('SET', 'maxmemory', '1')
    await expect(guard().set(holdOf(33n), 'x')).rejects.toMatchObject({ code: 'storage' })
    await redis.config('SET', 'maxmemory', '0')
    await redis.call('REPLICAOF', '127.0.0.1', '1')
    await expect(guard().set(holdOf(33n), 'x')).rejects.toMatchObject({ code: 'unreachable' })
    expect(await guard().checkServer()).toContainEqual(expect.objectContaining({ setting: 'role', value: 'replica' }))
    await redis.call('REPLICAOF', 'NO', 'ONE')
  })

  it.each([33, -1n, 0n, 2n ** 63n, null])('rejects the token %s', async (token) => {
    await expect(guard().set(holdOf(token as never), 'x')).rejects.toMatchObject({ code: 'invalid' })
    expect(await redis.dbsize()).toBe(0)
  })

  it('passes the test kit', async () => {
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

describeWith('Redis', 'the guard of Redis in a cluster', () => {
  it('keeps the keys of one resource in one slot for any name', async () => {
    const server = await startRedis({ args: ['--cluster-enabled', 'yes'] })
    const redis = new Redis(server.url)
    try {
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await expect
        .poll(async () => String(await redis.call('CLUSTER', 'INFO')), { timeout: 10_000 })
        .toMatch(/state:ok/)
      const guard = fence(redis)
      for (const name of ['list', '}{', 'a}b', '{a', 'ä%']) {
        const keys = [`${guard.keyOf(name)}:items`]
        const push = guard.run(holdOf(33n, name), "return redis.call('RPUSH', KEYS[2], ARGV[5])", { keys, args: ['a'] })
        expect(await push, name).toBe(1)
      }
      const elsewhere = guard.run(holdOf(34n, 'list'), "return redis.call('GET', KEYS[2])", { keys: ['other'] })
      await expect(elsewhere).rejects.toMatchObject({ code: 'invalid', hint: expect.stringContaining('keyOf') })
    } finally {
      redis.disconnect()
      await server.stop()
    }
  })
})
