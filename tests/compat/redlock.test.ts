import { HoldLostError, InvalidError } from 'leasehold'
import Redlock, { ExecutionError, Lock, LockError, ResourceLockedError } from 'leasehold/compat/redlock'
import { describe, expect, test } from 'vitest'
import { readmeBlocks, rewritten, runCode } from './readme.js'
import { until, useService } from './service.js'

const service = useService()
const redlocked = (settings = {}) => new Redlock([service.client()], settings)

describe('the README of redlock 5 runs with another import and connection', () => {
  test('Configuration', async () => {
    const [code] = readmeBlocks('redlock', 'Configuration') as [string]
    const scope = { Redlock, locks: service.client() }
    const text = rewritten(code, [
      [/import Client from "ioredis";\n/, ''],
      [/import Redlock from ".\/redlock";\n/, ''],
      [/new Client\(\{ host: "a.redis.example.com" \}\)/, 'locks'],
      [/new Client\(\{ host: "b.redis.example.com" \}\)/, 'locks'],
      [/new Client\(\{ host: "c.redis.example.com" \}\)/, 'locks'],
    ])
    await runCode(`${text}\nawait (await redlock.acquire(['configured'], 5000)).release()`, scope)
  })

  test('Usage: using, and acquire with extend and release', async () => {
    const [using, acquire] = readmeBlocks('redlock', 'Usage') as [string, string]
    const redlock = redlocked()
    const seen: string[] = []
    const something = async () => {
      const { held } = await service.client().query()
      seen.push(...held.flatMap((row) => row.locks.map((lock) => lock.name)))
    }
    const scope = { redlock, something, somethingElse: something, senderId: 'users/1', recipientId: 'users/2' }
    await runCode(using, scope)
    expect(seen).toEqual(['users/1', 'users/2', 'users/1', 'users/2'])
    seen.length = 0
    await runCode(acquire, scope)
    expect(seen).toEqual(['a', 'a'])
    for (const name of ['users/1', 'users/2', 'a']) await service.free(name)
  })

  test('Error Handling', async () => {
    const [code] = readmeBlocks('redlock', 'Error Handling') as [string]
    const redlock = redlocked({ retryCount: 0 })
    const printed: unknown[] = []
    await runCode(code, { redlock, ResourceLockedError, console: { error: (error: unknown) => printed.push(error) } })
    const lock = await redlock.acquire(['taken'], 5000)
    await expect(redlock.acquire(['taken'], 5000)).rejects.toBeInstanceOf(ExecutionError)
    expect(printed).toEqual([])
    await lock.release()
  })
})

describe('the README of redlock 4.2 (promises) runs with another connection', () => {
  const blocks = [
    ...readmeBlocks('redlock4', 'Usage (promise style)'),
    ...readmeBlocks('redlock4', 'Locking multiple resources'),
  ]
  test('there are its three examples', () => expect(blocks).toHaveLength(3))
  test.each(blocks.map((code, i) => [`example ${i + 1}`, code]))('%s', async (_, code) => {
    const redlock = redlocked()
    const locks: Lock[] = []
    const printed: unknown[] = []
    const spied = {
      // Longer than printed: a busy machine must not end the lock in the middle of the example.
      lock: async (resource: string | string[], ttl: number) => {
        const lock = await redlock.lock(resource, ttl * 10)
        expect(lock.hold.state).toBe('held')
        locks.push(lock)
        return lock
      },
    }
    await runCode(code, { redlock: spied, console: { error: (error: unknown) => printed.push(error) } })
    await until(() => locks[0]?.hold.state === 'released', 'the example has unlocked')
    for (const name of locks[0]?.resources ?? []) await service.free(name)
    expect(printed).toEqual([])
  })

  test('Configuration, with its CommonJS import', async () => {
    const [code] = readmeBlocks('redlock4', 'Configuration') as [string]
    const text = rewritten(code, [
      [/require\('redis'\).createClient\(6379, 'redis1.example.com'\)/, 'locks'],
      [/require\('redis'\).createClient\(6379, 'redis2.example.com'\)/, 'locks'],
      [/require\('redis'\).createClient\(6379, 'redis3.example.com'\)/, 'locks'],
      [/var Redlock = require\('redlock'\);\n/, ''],
    ])
    await runCode(`${text}\nawait (await redlock.lock('configured4', 10_000)).unlock()`, {
      Redlock,
      locks: service.client(),
    })
  })
})

describe('redlock over Leasehold', () => {
  test('never acquired and lost are different errors', async () => {
    const redlock = redlocked({ retryCount: 1, retryDelay: 50 })
    const lock = await redlock.acquire(['two'], 5000)
    const refused = await redlock.acquire(['two'], 5000).catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'ExecutionError', code: 'timeout', attempts: [expect.any(Promise)] })
    expect(await redlock.lock('two', 5000).catch((error: unknown) => error)).toBeInstanceOf(LockError)
    await service.client().steal('two', { reason: 'test' })
    await until(() => lock.expiration === 0, 'the loss is known')
    const lost = await lock.extend(5000).catch((error: unknown) => error)
    expect(lost).toMatchObject({ name: 'ExecutionError', code: 'lost', cause: { reason: 'stolen' } })
    expect(lost).not.toBeInstanceOf(HoldLostError)
    expect(await lock.release()).toMatchObject({ released: false })
  })

  test('a lock that is not extended ends with its duration; extended it does not', async () => {
    const redlock = redlocked()
    const [short, long] = [await redlock.acquire(['short'], 400), await redlock.acquire(['long'], 10_000)]
    expect(short.expiration).toBeLessThanOrEqual(Date.now() + 400)
    const token = long.token
    expect(await long.extend(60_000)).toBe(long)
    expect(long.token).toBeGreaterThan(token)
    expect(long.expiration).toBeGreaterThan(Date.now() + 40_000)
    await until(() => short.hold.state === 'lost', 'the short lock has ended')
    expect(short.expiration).toBe(0)
    await service.free('short')
    expect(long.hold.state).toBe('held')
    await long.extend(300)
    expect(long.expiration).toBeLessThanOrEqual(Date.now() + 300)
    await until(() => long.expiration === 0, 'the long lock has ended, too')
  })

  test('using renews beyond its duration, aborts at a loss, and puts the error of the routine first', async () => {
    const redlock = redlocked()
    const token = await redlock.using(['u'], 2_000, async (signal, hold) => {
      await new Promise((resolve) => setTimeout(resolve, 4_500))
      expect(signal.aborted).toBe(false)
      return hold.token
    })
    expect(token).toBeTypeOf('bigint')
    const lost = redlock.using(['u'], 5000, async (signal) => {
      await service.client().steal('u', { reason: 'test' })
      await until(() => signal.aborted, 'the signal aborts')
      expect(signal.error).toMatchObject({ name: 'ExecutionError', code: 'lost' })
      return 7
    })
    await expect(lost).rejects.toMatchObject({ code: 'lost', cause: { result: 7 } })
    const failing = redlock.using(['u'], 5000, async () => Promise.reject(new TypeError('of the routine')))
    await expect(failing).rejects.toThrow(new TypeError('of the routine'))
    await service.free('u')
  })

  test('refuses what it would have to ignore', async () => {
    expect(() => new Redlock([])).toThrow(InvalidError)
    expect(() => new Redlock([service.client(), service.client()])).toThrow(/one client/)
    expect(() => new Redlock([{ evalsha() {} } as never])).toThrow(/createLocks|takes a client/)
    expect(() => redlocked({ retries: 3 })).toThrow(/retries/)
    const redlock = redlocked()
    await expect(redlock.acquire(['x'], 1.5)).rejects.toThrow(/integer/)
    await expect(redlock.lock('x', 1000, () => {})).rejects.toThrow(/promise/)
  })
})
