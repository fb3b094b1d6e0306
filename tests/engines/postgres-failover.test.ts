import { createLocksOn, type Hold, type Locks } from '@leasehold/client'
import { StaleTokenError } from '@leasehold/core'
import { postgresEngine } from '@leasehold/engines/postgres'
import { guardSql } from '@leasehold/fence/migrations'
import { fence } from '@leasehold/fence/pg'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type DataSource, dump, type Postgres, promote, startPostgres } from '../services/postgres.js'
import { Proxy } from '../services/proxy.js'
import { describeWith } from '../services/suite.js'

const LOCK = 'invoice/a'

/** The epoch of a token. */
const epochOf = (token: bigint): number => Number(token >> 48n)

describeWith('PostgreSQL', 'PostgreSQL after a failover', () => {
  const servers: Postgres[] = []
  const open: Locks[] = []
  let primary: Postgres
  /** Loses what is not durable when it is killed. */
  let crashing: Postgres
  /** Keeps the protected rows: a server that has nothing to do with the others. */
  let store: Postgres
  let pool: pg.Pool

  beforeAll(async () => {
    const asynchronous = { synchronous_commit: 'off', wal_writer_delay: '10s', bgwriter_lru_maxpages: '0' }
    ;[primary, crashing, store] = await Promise.all([server(), server(undefined, asynchronous), server()])
    pool = new pg.Pool({ connectionString: store.url, max: 4 })
    await pool.query(guardSql('pg'))
    await pool.query('CREATE TABLE invoice (id text PRIMARY KEY, total bigint NOT NULL)')
  })
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close()
  })
  afterAll(async () => {
    await pool.end()
    await Promise.all(servers.map((one) => one.stop()))
  })

  async function server(data?: DataSource, settings: Record<string, string> = {}): Promise<Postgres> {
    const started = await startPostgres({ settings: { wal_keep_size: '128MB', ...settings }, ...(data && { data }) })
    servers.push(started)
    return started
  }

  async function client(url: string): Promise<Locks> {
    const locks = createLocksOn(await postgresEngine(url), { connectTimeout: '20s' })
    open.push(locks)
    return locks
  }

  async function sql(at: Postgres, text: string): Promise<Record<string, unknown>[]> {
    const connection = new pg.Client({ connectionString: at.url })
    connection.on('error', () => {})
    await connection.connect()
    try {
      return (await connection.query(text)).rows
    } finally {
      await connection.end()
    }
  }

  /** Grants the lock `times` times, by turns to two clients without a memory, and returns the tokens. */
  async function grants(url: string, times: number): Promise<bigint[]> {
    const clients = [await client(url), await client(url)]
    const tokens: bigint[] = []
    for (let i = 0; i < times; i++) await (clients[i % 2] as Locks).request(LOCK, (hold) => tokens.push(hold.token))
    for (const locks of clients) await locks.close()
    return tokens
  }

  /** Cuts a standby off, so that it lacks what its primary commits from now on. */
  async function stopReceiving(standby: Postgres): Promise<void> {
    const [{ lsn } = {}] = await sql(primary, 'SELECT pg_current_wal_lsn()::text AS lsn')
    const replayed = () => sql(standby, `SELECT pg_last_wal_replay_lsn() >= '${String(lsn)}' AS caught_up`)
    await expect.poll(replayed).toEqual([{ caught_up: true }])
    await sql(standby, "ALTER SYSTEM SET primary_conninfo = ''")
    await sql(standby, 'SELECT pg_reload_conf()')
    await expect.poll(() => sql(standby, 'SELECT pid FROM pg_stat_wal_receiver')).toEqual([])
  }

  const identity = async (at: Postgres) =>
    (await sql(at, 'SELECT timeline, system FROM leasehold.server()'))[0] as { timeline: string; system: string }

  const write = (hold: Hold, total: number) =>
    fence(pool).with(hold, (tx) =>
      tx.query(`INSERT INTO invoice VALUES ('a', ${total}) ON CONFLICT (id) DO UPDATE SET total = ${total}`),
    )

  function expectGrowing(...runs: readonly bigint[][]): void {
    const tokens = runs.flat()
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)))
  }

  it('grants greater tokens on promoted standbys that lack grants, and the old primary is harmless', async () => {
    const before = await grants(primary.url, 2)
    const [first, second, third] = (await Promise.all(
      [1, 2, 3].map(() => server({ kind: 'standby', of: primary })),
    )) as [Postgres, Postgres, Postgres]
    for (const standby of [first, second, third]) await stopReceiving(standby)
    await using proxy = await Proxy.start(primary.port)
    const aware = await client(primary.url.replace(String(primary.port), String(proxy.port)))
    const unaware = await client(primary.url)
    const lost = await grants(primary.url, 3)
    const old = await aware.acquire(LOCK)
    lost.push(old.token)

    // A client that remembers nothing is the first: only the timeline tells that something may be missing.
    await promote(first)
    const onFirst = await grants(first.url, 3)
    expect(onFirst.map(epochOf)).toEqual(Array(3).fill(2))
    expectGrowing(before, lost, onFirst)
    proxy.retarget(first.port)
    proxy.cut()
    const next = await aware.acquire(LOCK)
    expect(old.state).toBe('lost')
    expectGrowing(before, lost, onFirst, [next.token])
    await write(next, 1)

    // The old primary keeps running, and grants the lock to a client that knows of nothing. The guard refuses its hold.
    const stale = await unaware.acquire(LOCK, { wait: '30s' })
    expect(epochOf(stale.token)).toBe(1)
    await expect(write(stale, 2)).rejects.toBeInstanceOf(StaleTokenError)
    expect((await pool.query('SELECT total FROM invoice')).rows).toEqual([{ total: '1' }])
    await stale.release()
    // A client that has seen the new epoch does not go back to it, after a restart neither.
    for (const restart of [false, true]) {
      if (restart) await primary.restart('SIGINT')
      proxy.retarget(primary.port)
      proxy.cut()
      const refused = aware.acquire('another', { wait: '2s' })
      await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('older than 2') })
      expect((await sql(primary, 'SELECT epoch FROM leasehold.head'))[0]).toEqual({ epoch: '1' })
    }

    // The second standby knows of nothing either, and gets the same timeline and the same epoch.
    await promote(second)
    expect(await identity(second)).toEqual(await identity(first))
    const onSecond = await grants(second.url, 3)
    expect(onSecond.map(epochOf)).toEqual(Array(3).fill(2))
    expectGrowing(before, lost, onFirst, [next.token], onSecond)
    // A client that comes over from the first one finds another log of its epoch.
    proxy.retarget(second.port)
    proxy.cut()
    const afterSecond = await aware.acquire('b')
    expect(epochOf(afterSecond.token)).toBe(3)

    // On the third one nothing was appended since its promotion: it is of epoch 1 and no old primary.
    await promote(third)
    proxy.retarget(third.port)
    proxy.cut()
    const afterThird = await aware.acquire('c')
    expect(epochOf(afterThird.token)).toBe(4)
    expectGrowing(onSecond, [afterSecond.token, afterThird.token])
    // While there still is a way.
    await aware.close()
  })

  it('grants greater tokens on a copy of a running server, which has the same timeline and identifier', async () => {
    const before = await grants(primary.url, 2)
    const copy = await server({ kind: 'backup', of: primary })
    const lost = await grants(primary.url, 3)
    expect(await identity(copy)).toEqual(await identity(primary))
    const onCopy = await grants(copy.url, 3)
    expectGrowing(before, lost, onCopy)
    expect(onCopy.map(epochOf)).toEqual(Array(3).fill(1))
    // The floor is drawn once for each start.
    const floors = async (at: Postgres) =>
      (await sql(at, 'SELECT index FROM leasehold.log WHERE floor IS NOT NULL')).length
    expect(await floors(copy)).toBe((await floors(primary)) + 1)
  })

  it('begins a new epoch on a server into which a dump was restored', async () => {
    const before = await grants(primary.url, 2)
    using dumped = await dump(primary, 'leasehold')
    const lost = await grants(primary.url, 3)
    await dumped.restore(store)
    const restored = await grants(store.url, 3)
    expect(restored.map(epochOf)).toEqual(Array(3).fill(2))
    expectGrowing(before, lost, restored)
    // And in the place where it came from.
    await sql(primary, 'DROP SCHEMA leasehold CASCADE')
    await dumped.restore(primary)
    const again = await grants(primary.url, 3)
    expect(again.map(epochOf)).toEqual(Array(3).fill(2))
    expectGrowing(restored, again)
  })

  it('loses no grant in a crash although synchronous_commit is off', async () => {
    const tokens = await grants(crashing.url, 2)
    const end = 'SELECT index, nonce FROM leasehold.head'
    const [before] = await sql(crashing, end)
    await crashing.restart('SIGKILL')
    expect(await sql(crashing, end)).toEqual([before])
    expectGrowing(tokens, await grants(crashing.url, 2))
  })

  it('grants greater tokens after a restart that has lost commits', async () => {
    const before = await grants(crashing.url, 2)
    const end = 'SELECT index::int FROM leasehold.head'
    const [{ index: durable } = {}] = await sql(crashing, end)
    // What makes commits durable is taken out.
    await sql(
      crashing,
      `DO $$ BEGIN EXECUTE replace(pg_get_functiondef('leasehold.append'::regproc),
      $q$set_config('synchronous_commit', 'on', true)$q$, 'NULL'); END $$`,
    )
    await sql(crashing, 'CHECKPOINT')
    const [{ pid } = {}] = await sql(crashing, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    process.kill(Number(pid), 'SIGSTOP')
    await using proxy = await Proxy.start(crashing.port)
    const remembering = await client(crashing.url.replace(String(crashing.port), String(proxy.port)))
    const lost = await grants(crashing.url, 3)
    const hold = await remembering.acquire('kept')
    proxy.shut()
    const restarted = crashing.restart('SIGKILL')
    process.kill(Number(pid), 'SIGKILL')
    await restarted
    const [{ index } = {}] = await sql(crashing, end)
    expect(Number(index)).toBeLessThanOrEqual(Number(durable))
    const after = await grants(crashing.url, 3)
    expect(after.map(epochOf)).toEqual(Array(3).fill(1))
    expectGrowing(before, lost, after)
    // A client that remembers more than the server begins a new epoch.
    proxy.open()
    expect((await hold.lost)?.reason).toBe('epoch-changed')
    expectGrowing(after, [(await remembering.acquire('kept')).token])
    await remembering.close()
  })
})
