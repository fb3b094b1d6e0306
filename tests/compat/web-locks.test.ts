import { webLocks } from 'leasehold/compat/web-locks'
import { describe, expect, test } from 'vitest'
import { readmeBlocks, rewritten, runCode } from './readme.js'
import { useService } from './service.js'

const service = useService()
const manager = () => webLocks(service.client())

describe('the READMEs of Web Locks for Node run with another import and connection', () => {
  test('web-locks', async () => {
    const [code] = readmeBlocks('web-locks', 'Usage') as [string]
    const locks = manager()
    const seen: unknown[] = []
    const filled = code.replace(/\/\/ use named resource[^\n]*/, 'seen.push(lock.name, (await locks.query()).held)')
    await runCode(filled, { locks, seen })
    expect(seen).toEqual(['Resource name', [expect.objectContaining({ name: 'Resource name', mode: 'exclusive' })]])
    await service.free('Resource name')
  })

  test('navigator.locks', async () => {
    const [code] = readmeBlocks('navigator.locks', 'Usage') as [string]
    const locks = manager()
    const seen: string[] = []
    const text = rewritten(code, [
      [/import "navigator.locks";\n/, ''],
      [/\nnavigator.locks.request/, '\nawait navigator.locks.request'],
    ])
    const step = (name: string) => async () => {
      seen.push(name, ...(await locks.query()).held.map((lock) => lock.name))
    }
    await runCode(text, { navigator: { locks }, do_something: step('one'), do_something_else: step('two') })
    expect(seen).toEqual(['one', 'my_resource', 'two', 'my_resource'])
  })
})

describe('what is documented for navigator.locks', () => {
  test('request resolves with the value of the callback, and rejects with its error; the lock is free then', async () => {
    const locks = manager()
    expect(await locks.request('r', () => 5)).toBe(5)
    await expect(locks.request('r', () => Promise.reject(new TypeError('own')))).rejects.toThrow(new TypeError('own'))
    expect(await locks.query()).toEqual({ held: [], pending: [] })
  })

  test('exclusive requests are served one after the other, in order; shared ones together', async () => {
    const locks = manager()
    const order: number[] = []
    const turn = (n: number) => locks.request('r', async () => order.push(n))
    await Promise.all([turn(1), turn(2), turn(3)])
    expect(order).toEqual([1, 2, 3])
    const both = await locks.request('s', { mode: 'shared' }, () =>
      locks.request('s', { mode: 'shared' }, async () => (await locks.query()).held.map((lock) => lock.mode)),
    )
    expect(both).toEqual(['shared', 'shared'])
  })

  test('ifAvailable gives null when the lock is taken', async () => {
    const locks = manager()
    const inner = await locks.request('r', () => locks.request('r', { ifAvailable: true }, (lock) => lock))
    expect(inner).toBeNull()
    expect(await locks.request('r', { ifAvailable: true }, (lock) => lock?.name)).toBe('r')
  })

  test('a signal ends the waiting with its reason', async () => {
    const locks = manager()
    const controller = new AbortController()
    await locks.request('r', async () => {
      const waiting = locks.request('r', { signal: controller.signal }, () => 'granted')
      controller.abort(new RangeError('enough'))
      await expect(waiting).rejects.toThrow(new RangeError('enough'))
    })
    await expect(locks.request('r', { signal: AbortSignal.abort() }, () => 1)).rejects.toMatchObject({
      name: 'AbortError',
    })
    expect((await locks.query()).pending).toEqual([])
  })

  test('steal takes the lock: the request that had it rejects with AbortError at once', async () => {
    const locks = manager()
    let stolen: Promise<unknown> = Promise.resolve()
    let end = () => {}
    await new Promise<void>((begun) => {
      stolen = locks.request('r', () => {
        begun()
        return new Promise<void>((resolve) => {
          end = resolve
        })
      })
    })
    const rejected = expect(stolen).rejects.toMatchObject({
      name: 'AbortError',
      cause: { code: 'lost', reason: 'stolen' },
    })
    expect(await locks.request('r', { steal: true }, (lock) => lock.mode)).toBe('exclusive')
    await rejected
    end()
  })

  test('query shows who holds and who waits', async () => {
    const locks = manager()
    const { waiting } = await locks.request('r', async (lock) => {
      expect(lock.token).toBeTypeOf('bigint')
      const waiting = locks.request('r', { mode: 'shared' }, () => {})
      await expect.poll(async () => (await locks.query()).pending.length).toBe(1)
      const { held, pending } = await locks.query()
      expect(held).toEqual([{ name: 'r', mode: 'exclusive', clientId: expect.stringMatching(/^\d+$/) }])
      expect(pending).toEqual([{ name: 'r', mode: 'shared', clientId: held[0]?.clientId }])
      return { waiting }
    })
    await waiting
  })

  test('what must not be combined is refused', async () => {
    const locks = manager()
    const refused = (options: object, name = 'r') => locks.request(name, options, () => 1)
    const { signal } = new AbortController()
    for (const options of [
      { steal: true, ifAvailable: true },
      { steal: true, mode: 'shared' },
      { signal, steal: true },
      { signal, ifAvailable: true },
    ]) {
      await expect(refused(options)).rejects.toMatchObject({ name: 'NotSupportedError' })
    }
    await expect(refused({}, '-r')).rejects.toMatchObject({ name: 'NotSupportedError' })
    await expect(refused({ mode: 'other' })).rejects.toThrow(TypeError)
    await expect(refused({ durable: true })).rejects.toThrow(/durable/)
    await expect(locks.request('r', undefined as never)).rejects.toThrow(TypeError)
  })
})
