import { setTimeout as sleep } from 'node:timers/promises'
import { createLocksOn, type Locks } from '@leasehold/client'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { startPostgres } from '../../../../tests/services/postgres.js'
import type { Service } from '../../../../tests/services/process.js'
import { Proxy } from '../../../../tests/services/proxy.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { postgresEngine } from '../../src/postgres.js'

const TTL_MS = 4_000
/** A quarter of the TTL until the cut, and a second for the new connection on a busy machine. */
const RECOVERY_MS = TTL_MS / 4 + 1_000

describeWith('PostgreSQL', 'wedged connections to PostgreSQL', () => {
  let server: Service
  let proxy: Proxy
  const open: Locks[] = []

  beforeAll(async () => {
    server = await startPostgres()
  })
  beforeEach(async () => {
    proxy = await Proxy.start(server.port)
  })
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close()
    await proxy[Symbol.asyncDispose]()
  })
  afterAll(() => server.stop())

  const client = async (through: 'proxy' | 'direct' = 'proxy', ttl = TTL_MS): Promise<Locks> => {
    const url = new URL(server.url)
    if (through === 'proxy') url.port = String(proxy.port)
    const locks = createLocksOn(await postgresEngine(url.href), { ttl: `${ttl}ms`, connectTimeout: '20s', wait: '30s' })
    open.push(locks)
    return locks
  }

  it('reconnects within a quarter of the TTL, and keeps its holds', async () => {
    const locks = await client()
    const hold = await locks.acquire('kept')
    await sleep(300)
    proxy.freeze()
    const began = performance.now()
    expect(await locks.tryAcquire('next')).not.toBeNull()
    expect(performance.now() - began).toBeLessThan(RECOVERY_MS)
    await sleep(TTL_MS + 500)
    expect(hold.state).toBe('held')
    expect((await (await client('direct')).query({ name: 'kept' })).held.map(({ id }) => id)).toEqual([hold.id])
  })

  it('keeps the places of waiting acquires', async () => {
    const [holder, waiter, rival] = [await client('direct'), await client(), await client('direct')]
    const hold = await holder.acquire('queue')
    const order: string[] = []
    const first = waiter.acquire('queue').then((granted) => {
      order.push('first')
      return granted
    })
    await expect.poll(async () => (await holder.query({ name: 'queue' })).pending.length).toBe(1)
    const second = rival.acquire('queue').then((granted) => {
      order.push('second')
      return granted
    })
    await expect.poll(async () => (await holder.query({ name: 'queue' })).pending.length).toBe(2)
    proxy.freeze()
    await sleep(TTL_MS + 500)
    await hold.release()
    const began = performance.now()
    await (await first).release()
    expect(performance.now() - began).toBeLessThan(1_000)
    await (await second).release()
    expect(order).toEqual(['first', 'second'])
  })

  it('tries again when the new connection is silent too', async () => {
    const locks = await client('proxy', 20_000)
    const hold = await locks.acquire('twice')
    proxy.mute()
    const next = locks.acquire('twice/next')
    // The old connection after 5 s, the new one after 2.5 s.
    await sleep(8_000)
    proxy.freeze()
    proxy.open()
    await next
    expect(hold.state).toBe('held')
  })

  it('replaces a listening connection that has gone silent', async () => {
    const listening = await Proxy.start(server.port)
    const listenUrl = new URL(server.url)
    listenUrl.port = String(listening.port)
    const url = new URL(server.url)
    url.searchParams.set('listen', listenUrl.href)
    const locks = createLocksOn(await postgresEngine(url.href), { ttl: '20s' })
    open.push(locks)
    await locks.acquire('here')
    await expect.poll(() => listening.accepted).toBe(1)
    await sleep(500)
    listening.freeze()
    await expect.poll(() => listening.accepted, { timeout: 12_000 }).toBe(2)
    await locks.close()
    await listening[Symbol.asyncDispose]()
  })

  it('does not cut a connection because this process was busy', async () => {
    const locks = await client()
    await locks.acquire('busy')
    await sleep(300)
    const { accepted } = proxy
    const acquired = locks.acquire('busy/next')
    // The request is sent; then nothing runs until its time limit has passed.
    await sleep(1)
    const until = performance.now() + TTL_MS / 2
    while (performance.now() < until);
    await acquired
    expect(proxy.accepted).toBe(accepted)
  })

  it('continues after statements that took longer than the limit of a short TTL', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 })
    const locks = await client('proxy', 1_000)
    await (await locks.acquire('slow')).release()
    const held = await pool.connect()
    try {
      await held.query('BEGIN; SELECT * FROM leasehold.head FOR UPDATE')
      const next = locks.acquire('slow/next', { ttl: '10s', wait: '20s' })
      await sleep(1_500)
      await held.query('COMMIT')
      await next
    } finally {
      held.release()
      await pool.end()
    }
  })
})
