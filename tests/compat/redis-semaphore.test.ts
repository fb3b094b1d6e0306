import type { Locks } from 'leasehold'
import { LostLockError, Mutex, Semaphore, TimeoutError } from 'leasehold/compat/redis-semaphore'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readmeBlocks, rewritten, runCode } from './readme.js'
import { until, useService } from './service.js'

const service = useService()
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
beforeEach(() => process.on('unhandledRejection', note))
afterEach(() => {
  process.off('unhandledRejection', note)
  expect(unhandled.splice(0)).toEqual([])
})

const MUTEX = readmeBlocks('redis-semaphore', 'Mutex')
const SEMAPHORE = readmeBlocks('redis-semaphore', 'Semaphore')

/** Import and connection of an example, replaced; its placeholders for the caller's work, filled. */
function prepared(code: string, kind: 'Mutex' | 'Semaphore'): string {
  const own: [RegExp, string][] = code.includes('require(')
    ? [
        [new RegExp(`const ${kind} = require\\('redis-semaphore'\\).${kind}\n`), ''],
        [/const Redis = require\('ioredis'\)\n/, ''],
        [/new Redis\(\)/, 'locks'],
      ]
    : []
  return rewritten(code, own).replace(/\/\/ (critical|maximum 5)[^\n]*/g, 'await critical()')
}

describe('the README of redis-semaphore runs with another import and connection', () => {
  let redisClient: Locks
  let ran: number
  let other: Locks
  beforeEach(() => {
    redisClient = service.client()
    other = service.client()
    ran = 0
  })
  let newest: Mutex | undefined
  class Seen extends Mutex {
    constructor(...args: ConstructorParameters<typeof Mutex>) {
      super(...args)
      newest = this
    }
  }
  const scope = (critical: () => unknown, more = {}) => ({ Mutex: Seen, Semaphore, redisClient, critical, ...more })
  const holders = async (name: string) => (await other.query({ name })).held.length
  const critical = async () => {
    ran += await holders('mutex:lockingResource')
  }
  /** Once it has run twice, another client steals the lock. */
  const untilStolen = async () => {
    await critical()
    if (ran < 2) return
    await other.steal('mutex:lockingResource', { reason: 'test' })
    await until(() => newest?.isAcquired === false, 'the loss is known')
  }

  test('has the sections and examples that are known here', () => {
    expect([MUTEX.length, SEMAPHORE.length]).toEqual([6, 1])
  })

  test('Mutex: Example', async () => {
    const code = prepared(MUTEX[0] as string, 'Mutex').replace('const redisClient = locks', '')
    const { doSomething } = await runCode(code, scope(critical))
    await Promise.all([doSomething?.(), doSomething?.()])
    expect(ran).toBe(2)
    await service.free('mutex:lockingResource')
  })

  test('Mutex: lost lock handling', async () => {
    const errors: unknown[] = []
    const console = { error: (error: unknown) => errors.push(error) }
    const { doSomething } = await runCode(prepared(MUTEX[1] as string, 'Mutex'), scope(untilStolen, { console }))
    await doSomething?.()
    expect(ran).toBe(2)
    expect(errors).toEqual([expect.any(LostLockError)])
    expect(errors[0]).toMatchObject({ code: 'lost', cause: { reason: 'stolen' } })
  })

  test('Mutex: optional lock', async () => {
    const { doSomething } = await runCode(prepared(MUTEX[2] as string, 'Mutex'), scope(untilStolen))
    const taken = await other.acquire('mutex:lockingResource')
    await doSomething?.()
    expect(ran).toBe(0)
    await taken.release()
    await doSomething?.()
    expect(ran).toBe(2)
  })

  test('Mutex: temporary refresh', async () => {
    const { doSomething } = await runCode(prepared(MUTEX[3] as string, 'Mutex'), scope(critical))
    await doSomething?.()
    expect(ran).toBe(1)
    const [row] = (await other.query({ name: 'mutex:lockingResource' })).held
    expect(row?.remainingMs).toBeGreaterThan(100_000)
    await other.steal('mutex:lockingResource', { reason: 'test' })
  })

  test('Mutex: dynamically adjusting existing lock', async () => {
    const code = prepared(MUTEX[4] as string, 'Mutex').replace('const redisClient = locks', '')
    await runCode(
      `${code}\nawait preMutex.acquire(); await mutex.acquire(); await critical(); await mutex.release()`,
      scope(critical),
    )
    expect(ran).toBe(1)
    await service.free('mutex:lockingResource')
  })

  test('Mutex: shared between scheduler and handler', async () => {
    const code = prepared(MUTEX[5] as string, 'Mutex').replace('const redisClient = locks', '')
    const messages: unknown[] = []
    const someQueue = { publish: (message: unknown) => messages.push(message) }
    const lines: string[] = []
    const logger = { info: (line: string) => lines.push(line) }
    const scheduler = await runCode(code, scope(critical, { someQueue, logger }))
    await scheduler.every10MinutesCronScheduler?.()
    expect(messages).toHaveLength(1)
    // A handler somewhere else, with a client of its own.
    const handler = await runCode(code, { ...scope(critical, { someQueue, logger }), redisClient: other })
    await (handler.queueHandler as (message: unknown) => Promise<void>)(messages[0])
    expect(ran).toBe(1)
    await service.free('mutex:lockingResource')
    await expect((handler.queueHandler as (message: unknown) => Promise<void>)(messages[0])).rejects.toThrow(
      LostLockError,
    )
  })

  test('Semaphore: Example', async () => {
    const code = prepared(SEMAPHORE[0] as string, 'Semaphore').replace('const redisClient = locks', '')
    let [inside, most] = [0, 0]
    // The first five wait for each other; a sixth would have the time to join them.
    const work = async () => {
      most = Math.max(most, ++inside)
      await until(() => most >= 5, 'five are inside')
      await new Promise((resolve) => setTimeout(resolve, 50))
      inside--
    }
    const { doSomething } = await runCode(code, scope(work))
    await Promise.all(Array.from({ length: 12 }, () => doSomething?.()))
    expect(most).toBe(5)
  })
})

describe('redis-semaphore over Leasehold', () => {
  test('a loop that never waits sees the end of its lock', async () => {
    const mutex = new Mutex(service.client(), 'sync', { lockTimeout: 400 })
    await mutex.acquire()
    const begin = performance.now()
    while (mutex.isAcquired);
    expect(performance.now() - begin).toBeLessThan(2_000)
    await mutex.release()
  })

  test('has a token that grows, and a slot', async () => {
    const locks = service.client()
    const mutex = new Mutex(locks, 'tokens')
    await mutex.acquire()
    const first = mutex.token as bigint
    await mutex.release()
    expect(mutex.token).toBeUndefined()
    await mutex.acquire()
    expect(mutex.token).toBeGreaterThan(first)
    await mutex.release()
    const two = [new Semaphore(locks, 'slots', 2), new Semaphore(locks, 'slots', 2)]
    for (const semaphore of two) await semaphore.acquire()
    expect(two.map((semaphore) => semaphore.slot)).toEqual([0, 1])
    const third = new Semaphore(locks, 'slots', 2, { acquireAttemptsLimit: 1 })
    expect(await third.tryAcquire()).toBe(false)
    await expect(third.acquire()).rejects.toThrow(TimeoutError)
    await Promise.all(two.map((semaphore) => semaphore.release()))
  })

  test('a loss without a listener is no unhandled rejection, nor is a listener that throws', async () => {
    const locks = service.client()
    const quiet = new Mutex(locks, 'quiet')
    await quiet.acquire()
    await locks.steal('mutex:quiet', { reason: 'test' })
    await until(() => !quiet.isAcquired, 'the loss is known')
    await quiet.release()
  })

  test('waits no longer than acquireTimeout, and aborts', async () => {
    const locks = service.client()
    const first = new Mutex(locks, 'wait')
    await first.acquire()
    const second = new Mutex(locks, 'wait', { acquireTimeout: 100 })
    await expect(second.acquire()).rejects.toMatchObject({ name: 'TimeoutError', code: 'timeout' })
    await expect(new Mutex(locks, 'wait').acquire(AbortSignal.abort('no'))).rejects.toMatchObject({
      name: 'AbortError',
      cause: 'no',
    })
    await first.release()
  })

  test('refuses what it would have to ignore', () => {
    const locks = service.client()
    expect(() => new Mutex(locks, '')).toThrow(/key/)
    expect(() => new Mutex({} as never, 'x')).toThrow(/client of leasehold/)
    expect(() => new Mutex(locks, 'x', { identifier: 'mine' })).toThrow(/identifier/)
    expect(() => new Mutex(locks, 'x', { lockTimout: 3 } as never)).toThrow(/lockTimout/)
    expect(() => new Mutex(locks, 'x', { lockTimeout: 30 })).toThrow(/lockTimeout/)
    expect(() => new Semaphore(locks, 'x', 0)).toThrow(/limit/)
  })
})
