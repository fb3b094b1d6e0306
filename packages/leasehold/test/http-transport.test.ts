import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CuttingProxy } from '../../../tests/soak/proxy.js'
import {
  connect,
  InvalidError,
  type Locks,
  NotHolderError,
  UnavailableError,
  VersionConflictError,
} from '../src/index.js'
import { type Service, until, Workshop } from '../../cli/test/support/cli.js'

/** Of the load whose connections are cut: until enough of them were. */
const TURNS_MAX = 3_000

const workshop = new Workshop()
let service: Service
let locks: Locks
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  locks = await connect(service.url, { transport: 'http', ttl: '10s', clientName: 'function' })
})
afterAll(async () => {
  await locks.close()
  await workshop.close()
})

describe("transport: 'http'", () => {
  test('does everything that the stream does, except for watches', async () => {
    const first = await locks.acquire('http/a', { data: 'run 17' })
    expect(await locks.tryAcquire('http/a')).toBeNull()
    const queued = locks.acquire('http/a')
    await until(async () => (await locks.query({ name: 'http/a' })).pending.length === 1, 'it waits')
    const view = await locks.query({ prefix: 'http' })
    expect(view.held).toMatchObject([{ id: first.id, client: 'function', persistent: false }])
    expect(new TextDecoder().decode(view.held[0]?.data)).toBe('run 17')
    expect(view.pending).toHaveLength(1)
    expect(await first.release()).toEqual({ released: true })
    const second = await queued
    expect(second.token).toBeGreaterThan(first.token)
    await second.release()
    expect(await first.release()).toEqual({ released: true })

    const both = await locks.acquire(['http/b', { name: 'http/c', mode: 'shared' }])
    expect(both.tokenOf('http/c')).toBeGreaterThan(0n)
    const permit = await locks.acquire('http/gpu', { permits: 2 })
    expect(permit.slot).toBe(0)
    await Promise.all([both.release(), permit.release()])
    expect(await locks.request('http/a', () => 42)).toBe(42)
    expect(await locks.once('http', { slot: '1' }, () => 1)).toEqual({ ran: true, value: 1 })
    await expect(locks.watch({}).next()).rejects.toBeInstanceOf(InvalidError)
  })

  test('registers, plain and fenced', async () => {
    const register = locks.register('http/config')
    expect(await register.get()).toBeNull()
    const { version } = await register.put({ on: true }, { ifVersion: 0n })
    expect(await register.get()).toMatchObject({ value: { on: true }, version, lock: undefined })
    await expect(register.put(1, { ifVersion: 0n })).rejects.toBeInstanceOf(VersionConflictError)
    await register.delete({ ifVersion: version })
    const hold = await locks.acquire('http/owner')
    await locks.register('http/fenced').put('v', { fence: hold, ifVersion: 0n })
    expect(await locks.register('http/fenced').get()).toMatchObject({ value: 'v', lock: 'http/owner' })
    await hold.release()
    const bytes = Uint8Array.of(0, 255, 7)
    await locks.register('http/bytes').put(bytes)
    expect((await locks.register('http/bytes').get())?.bytes).toEqual(bytes)
  })

  test('an aborted wait leaves the queue, and a grant that raced with the abort is released', async () => {
    const hold = await locks.acquire('http/abort')
    const controller = new AbortController()
    const waiting = locks.acquire('http/abort', { signal: controller.signal }).catch((error: unknown) => error)
    await until(async () => (await locks.query({ name: 'http/abort' })).pending.length === 1, 'it waits')
    controller.abort(new Error('mine'))
    expect(await waiting).toMatchObject({ name: 'AbortError', cause: { message: 'mine' } })
    await hold.release()
    await until(async () => {
      const { held, pending } = await locks.query({ name: 'http/abort' })
      return held.length + pending.length === 0
    }, 'nothing is left')
  })

  test('detects a steal with the next renewal, and can hand over a hold', async () => {
    const short = await connect(service.url, { transport: 'http', ttl: '4s' })
    const stolen = await short.acquire('http/stolen')
    await locks.steal('http/stolen', { reason: 'test' })
    expect((await stolen.lost)?.reason).toBe('stolen')
    const portable = await short.acquire('http/moved', { portable: true })
    const text = portable.serialize()
    const moved = await locks.adopt(text)
    expect(moved.token).toBeGreaterThan(portable.token)
    expect((await portable.lost)?.reason).toBe('moved')
    await moved.release()
    await expect(locks.adopt(text)).rejects.toBeInstanceOf(NotHolderError)
    await short.close()
  })

  test('renews, and reports a stopped service as unreachable', async () => {
    const ttl = 3_000
    const short = await connect(service.url, { transport: 'http', ttl })
    const hold = await short.acquire('http/renewed')
    const first = hold.deadline.getTime()
    await until(() => hold.deadline.getTime() > first + ttl || hold.state !== 'held', 'a whole TTL was added')
    expect(hold.state).toBe('held')
    await short.close()
    await expect(connect('http://127.0.0.1:1', { transport: 'http', connectTimeout: 300 })).rejects.toBeInstanceOf(
      UnavailableError,
    )
    await expect(connect(service.url, { transport: 'http', tls: { ca: 'x' } })).rejects.toBeInstanceOf(InvalidError)
  })

  test('cut connections change no outcome', async () => {
    const { proxy, url } = await CuttingProxy.to(service.url)
    const cut = await connect(url, { transport: 'http', ttl: '10s', wait: '60s', connectTimeout: '30s' })
    const timer = setInterval(() => proxy.cut(0.3, Math.random), 15)
    let last = 0n
    for (let turn = 0; turn < TURNS_MAX && (turn < 30 || proxy.cuts < 10); turn++) {
      await cut.request('http/cut', (hold) => {
        expect(hold.token).toBeGreaterThan(last)
        last = hold.token
      })
    }
    const counter = cut.register('http/counter')
    for (let turn = 0; turn < 10; turn++) {
      const entry = await counter.get()
      await counter.put(((entry?.value as number | undefined) ?? 0) + 1, { ifVersion: entry?.version ?? 0n })
    }
    clearInterval(timer)
    expect((await counter.get())?.value).toBe(10)
    expect(proxy.cuts).toBeGreaterThan(9)
    await cut.close()
    await proxy.close()
    const { held, pending } = await locks.query({ name: 'http/cut' })
    expect([held, pending]).toEqual([[], []])
  })
})
