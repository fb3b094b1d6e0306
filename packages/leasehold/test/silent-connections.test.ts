import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Proxy } from '../../../tests/services/proxy.js'
import { createLocks, type Locks } from '../src/index.js'
import { type Service, until, Workshop } from '../../cli/test/support/cli.js'

/** From the silence to success over a new connection. */
const BOUND_MS = 5_000

const workshop = new Workshop()
let service: Service
let proxy: Proxy
let locks: Locks
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
})
beforeEach(async () => {
  proxy = await Proxy.start(Number(new URL(service.url).port))
  locks = createLocks(`http://127.0.0.1:${proxy.port}`, { ttl: '20s', transport: 'http' })
})
afterEach(async () => {
  await locks.close()
  await proxy[Symbol.asyncDispose]()
})
afterAll(() => workshop.close())

async function timed<T>(work: Promise<T>): Promise<{ result: T; tookMs: number }> {
  const began = performance.now()
  const result = await work
  return { result, tookMs: performance.now() - began }
}

describe("transport: 'http' over connections that go silent", () => {
  test('acquires a free lock within the bound', async () => {
    await locks.acquire('kept')
    proxy.freeze()
    const { tookMs } = await timed(locks.acquire('next', { wait: '30s' }))
    expect(tookMs).toBeLessThan(BOUND_MS)
    expect((await locks.query({ name: 'next' })).held).toHaveLength(1)
  })

  test('acquires without a wait, releases and queries within the bound', async () => {
    const hold = await locks.acquire('kept')
    proxy.freeze()
    expect((await timed(locks.tryAcquire('try'))).tookMs).toBeLessThan(BOUND_MS)
    await locks.query({ name: 'try' })
    proxy.freeze()
    const { result, tookMs } = await timed(hold.release())
    expect(result).toEqual({ released: true })
    expect(tookMs).toBeLessThan(BOUND_MS)
    proxy.freeze()
    expect((await timed(locks.query({ name: 'try' }))).tookMs).toBeLessThan(BOUND_MS)
  })

  test('leaves all silent connections at once', async () => {
    await Promise.all(Array.from({ length: 8 }, (_, i) => locks.acquire(`many/${i}`)))
    proxy.freeze()
    const all = await timed(Promise.all(Array.from({ length: 3 }, (_, i) => locks.acquire(`more/${i}`))))
    expect(all.tookMs).toBeLessThan(BOUND_MS)
    expect((await timed(locks.acquire('after'))).tookMs).toBeLessThan(1_000)
  })

  test('keeps the place of a waiting acquire, and learns of its grant within the bound', async () => {
    const direct = createLocks(service.url)
    const hold = await direct.acquire('queue')
    const pending = async () => (await direct.query({ name: 'queue' })).pending.length
    const waiting = locks.acquire('queue', { wait: '30s' })
    await until(async () => (await pending()) === 1, 'it waits')
    const behind = direct.acquire('queue', { wait: '30s' })
    await until(async () => (await pending()) === 2, 'another one waits behind it')
    const statuses: string[] = []
    const unsubscribe = locks.on('status', ({ state }) => void statuses.push(state))
    proxy.freeze()
    await hold.release()
    const { result, tookMs } = await timed(waiting)
    expect(tookMs).toBeLessThan(BOUND_MS)
    expect(statuses).not.toContain('connecting')
    unsubscribe()
    await result.release()
    expect((await behind).token).toBeGreaterThan(result.token)
    await direct.close()
  })
})
