import { setTimeout as sleep } from 'node:timers/promises'
import { createLocksOn, type Engine, type EngineSession, type Locks } from '@leasehold/client'
import { SessionEndedError } from '@leasehold/core'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startPostgres } from '../../../../tests/services/postgres.js'
import type { Service } from '../../../../tests/services/process.js'
import { Proxy } from '../../../../tests/services/proxy.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { postgresEngine } from '../../src/postgres.js'

/** Whether `check` came true in time. */
async function within(ms: number, check: () => Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + ms; !(await check()); await sleep(20)) if (performance.now() > end) return false
  return true
}

const LISTENING = "application_name = 'leasehold' AND query LIKE 'LISTEN%'"

describeWith('PostgreSQL', 'the engine on PostgreSQL under faults', () => {
  let server: Service
  let pool: pg.Pool
  const open: (Locks | Engine)[] = []

  beforeAll(async () => {
    server = await startPostgres()
    pool = new pg.Pool({ connectionString: server.url, max: 2 })
    pool.on('error', () => {})
  })
  afterEach(async () => {
    for (const one of open.splice(0)) await one.close()
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  const engine = async (url = server.url): Promise<Engine> => {
    const made = await postgresEngine(url)
    open.push(made)
    return made
  }
  const client = async (url = server.url): Promise<Locks> => {
    const locks = createLocksOn(await postgresEngine(url), { connectTimeout: '20s', wait: '30s' })
    open.push(locks)
    return locks
  }
  const cut = (which: string) => pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${which}`)
  const acquire = (session: EngineSession, name: string, waitMs: number) =>
    session.acquire({
      locks: [{ name, mode: 'exclusive' }],
      waitMs,
      lockDelayMs: 0,
      persistent: false,
      portable: false,
      data: new Uint8Array(),
    })

  it('continues with its holds and queues after a crash of the server under load', async () => {
    const clients = await Promise.all([client(), client(), client()])
    const kept = await (clients[0] as Locks).acquire('kept', { ttl: '60s' })
    const tokens: bigint[] = []
    let stop = false
    const worker = async (locks: Locks, i: number) => {
      while (!stop) {
        await locks.request(i % 2 === 0 ? 'a' : `own/${i}`, { ttl: '60s' }, (hold) => {
          if (hold.name === 'a') tokens.push(hold.token)
        })
      }
    }
    const work = Promise.all(Array.from({ length: 9 }, (_, i) => worker(clients[i % 3] as Locks, i)))
    await sleep(300)
    const before = tokens.length
    await server.restart('SIGKILL')
    await sleep(1_500)
    stop = true
    await work
    expect(tokens.length).toBeGreaterThan(before)
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)))
    expect(new Set(tokens).size).toBe(tokens.length)
    expect(kept.state).toBe('held')
    expect((await (clients[1] as Locks).query({ name: 'kept' })).held.map(({ id }) => id)).toEqual([kept.id])
  })

  it('finds a grant by polling when the listening connection is cut, and listens again', async () => {
    const [one, two] = [await client(), await client()]
    const hold = await one.acquire('listen')
    const waiting = two.acquire('listen')
    await sleep(300)
    await cut(LISTENING)
    await hold.release()
    expect((await waiting).token).toBeGreaterThan(hold.token)
    const back = async () =>
      Number((await pool.query(`SELECT count(*) AS n FROM pg_stat_activity WHERE ${LISTENING}`)).rows[0].n)
    await expect.poll(back, { timeout: 15_000 }).toBe(2)
  })

  it('never grants to a waiter whose session has ended', async () => {
    const session = await (await engine()).openSession({ ttlMs: 500, client: 'mute', timeoutMs: 20_000 })
    const holder = await client()
    const hold = await holder.acquire('dead')
    const outcome = acquire(session, 'dead', Number.POSITIVE_INFINITY).catch((error: unknown) => error)
    const next = holder.acquire('dead')
    expect(await outcome).toBeInstanceOf(SessionEndedError)
    await hold.release()
    expect((await next).state).toBe('held')
  })

  it('grants a lock to its waiter when the lease of the holder ends, not earlier', async () => {
    const session = await (await engine()).openSession({ ttlMs: 3_000, client: 'gone', timeoutMs: 20_000 })
    const renewed = performance.now()
    await session.renew(20_000)
    const grant = await acquire(session, 'lease', 0)
    const next = await (await client()).acquire('lease')
    const took = performance.now() - renewed
    expect(took).toBeGreaterThan(2_990)
    expect(took).toBeLessThan(20_000)
    expect(next.token).toBeGreaterThan(grant.id)
  })

  it('acquires a lock once when the answer to the grant is lost with its connection', async () => {
    await using proxy = await Proxy.start(server.port)
    const url = `${server.url.replace(`:${server.port}`, `:${proxy.port}`)}?listen=off`
    const locks = await client(url)
    await locks.acquire('warm')
    const held = () => pool.query('SELECT index FROM leasehold.head').then(({ rows }) => Number(rows[0].index))
    // If a poll was in flight when the answers stopped, the grant was not requested: try again.
    for (let i = 0; ; i++) {
      const name = `lost/${i}`
      const before = await held()
      proxy.mute()
      const waiting = locks.acquire(name)
      const arrived = await within(2_000, async () => (await held()) > before)
      proxy.cut()
      proxy.open()
      const hold = await waiting
      expect((await (await client()).query({ name })).held.map(({ id }) => id)).toEqual([hold.id])
      if (arrived) break
      expect(i).toBeLessThan(10)
    }
    // While there still is a way.
    await locks.close()
  })

  it('survives repeated cuts of all connections', async () => {
    const locks = await client()
    const hold = await locks.acquire('survivor', { ttl: '30s' })
    for (let i = 0; i < 3; i++) {
      await cut("application_name = 'leasehold'")
      await locks.request(`after/${i}`, () => {})
    }
    expect(hold.state).toBe('held')
    expect(await hold.release()).toEqual({ released: true })
  })
})
