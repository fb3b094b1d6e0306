import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StaleTokenError } from '@leasehold/core'
import Database from 'libsql'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../../tests/services/postgres.js'
import type { Service } from '../../../tests/services/process.js'
import { describeWith } from '../../../tests/services/suite.js'
import type { GuardableHold } from '../src/hold.js'
import { guardSql } from '../src/migrations.js'
import { fence, fencedUpdate } from '../src/pg.js'
import { fence as fenceSqlite } from '../src/sqlite.js'
import { holdOf } from './support/holds.js'
import { LapsingLock, randomOf, stumble } from './support/lapsing-lock.js'

const WORKERS = 16
const UNITS = 2_000
const UNITS_FEW = 400
const LEASE_MIN_MS = 4
const LEASE_MAX_MS = 15

/** One resource as a worker sees it: read, later write what was computed from it. */
interface Counter {
  read(hold: GuardableHold, worker: number): Promise<number>
  write(hold: GuardableHold, value: number, worker: number): Promise<void>
  value(): Promise<number>
}

/** Twice as long as a unit takes on this machine now: most units fit, those that stumble do not. Leaves the value at 0. */
async function leaseFor(counter: Counter): Promise<number> {
  const warmUp = 10
  const start = performance.now()
  for (let i = 0; i < warmUp; i++) {
    await counter.read(holdOf(1n), 0)
    await counter.write(holdOf(1n), 0, 0)
  }
  const unitMs = (performance.now() - start) / warmUp
  return Math.min(Math.max(2 * unitMs, LEASE_MIN_MS), LEASE_MAX_MS)
}

/**
 * Sixteen workers under a lock whose leases are far too short for their pauses: read, pause, write one more.
 * Answers how many units were acknowledged, and how many refused.
 */
async function run(counter: Counter, units: number, seed: number) {
  const leaseMs = await leaseFor(counter)
  const lock = new LapsingLock(leaseMs)
  let next = 0
  let acknowledged = 0
  let refused = 0
  const worker = async (id: number) => {
    const random = randomOf(seed + id)
    while (next++ < units) {
      const { token, release } = await lock.acquire()
      const hold = holdOf(token)
      try {
        const seen = await counter.read(hold, id)
        await stumble(random, leaseMs)
        await counter.write(hold, seen + 1, id)
        acknowledged++
      } catch (error) {
        if (!(error instanceof StaleTokenError)) throw error
        refused++
      } finally {
        release()
      }
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, (_, id) => worker(id)))
  return { acknowledged, refused, value: await counter.value() }
}

describeWith('PostgreSQL', 'many holders at once on PostgreSQL', () => {
  let server: Service
  let pool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    pool = new pg.Pool({ connectionString: server.url, max: WORKERS })
    await pool.query(guardSql('pg'))
    await pool.query('CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)')
    await pool.query(guardSql('pg', { form: 'column', on: 'counter' }))
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })
  const reset = async () => {
    await pool.query('TRUNCATE leasehold_guard, counter')
    await pool.query('INSERT INTO counter (id, n) VALUES (1, 0)')
  }
  const value = async () => Number((await pool.query('SELECT n FROM counter')).rows[0].n)

  for (const [isolation, units] of [
    ['read committed', UNITS],
    ['repeatable read', UNITS_FEW],
  ] as const) {
    it(`loses no acknowledged unit and accepts no stale write (${isolation})`, async () => {
      await reset()
      const guard = fence(pool, { isolation, attempts: 50 })
      const result = await run(
        {
          read: (hold) => guard.with(hold, async (tx) => Number((await tx.query('SELECT n FROM counter')).rows[0].n)),
          write: (hold, n) => guard.with(hold, async (tx) => void (await tx.query('UPDATE counter SET n = $1', [n]))),
          value,
        },
        units,
        1,
      )
      expect(result.value).toBe(result.acknowledged)
      expect(result.acknowledged + result.refused).toBe(units)
      expect(result.refused).toBeGreaterThan(10)
      expect(result.acknowledged).toBeGreaterThan(units / 20)
    }, 60_000)
  }

  it('loses no acknowledged unit with the mark on the row', async () => {
    await reset()
    const row = { table: 'counter', where: { id: 1 } }
    const result = await run(
      {
        read: async (hold) => Number((await fencedUpdate(pool, hold, row)).n),
        write: async (hold, n) => void (await fencedUpdate(pool, hold, { ...row, set: { n } })),
        value,
      },
      UNITS_FEW,
      2,
    )
    expect(result.value).toBe(result.acknowledged)
    expect(result.refused).toBeGreaterThan(10)
    expect(result.acknowledged).toBeGreaterThan(UNITS_FEW / 20)
  }, 60_000)

  it('does lose units without a guard: the run can fail', async () => {
    await reset()
    const result = await run(
      {
        read: value,
        write: async (_hold, n) => void (await pool.query('UPDATE counter SET n = $1', [n])),
        value,
      },
      UNITS_FEW,
      3,
    )
    expect(result.acknowledged).toBe(UNITS_FEW)
    expect(result.value).toBeLessThan(UNITS_FEW)
  }, 60_000)

  it('does lose units when opening does not raise the mark', async () => {
    await reset()
    const row = { table: 'counter', where: { id: 1 } }
    const result = await run(
      { read: value, write: async (hold, n) => void (await fencedUpdate(pool, hold, { ...row, set: { n } })), value },
      UNITS_FEW,
      4,
    )
    expect(result.value).toBeLessThan(result.acknowledged)
  }, 60_000)
})

describe('many holders at once on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-'))
  const connections = Array.from({ length: WORKERS }, () => new Database(join(folder, 'counter.sqlite')))
  const [first] = connections as [Database.Database]
  beforeAll(() => {
    first.exec('PRAGMA journal_mode = WAL')
    for (const db of connections) db.exec('PRAGMA synchronous = OFF')
    first.exec(guardSql('sqlite'))
    first.exec('CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)')
    first.exec('INSERT INTO counter VALUES (1, 0)')
  })
  afterAll(() => {
    for (const db of connections) db.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const read = (db: Database.Database) => (db.prepare('SELECT n FROM counter').all()[0] as { n: number }).n
  const write = (db: Database.Database, n: number) => void db.prepare('UPDATE counter SET n = ?').run(n)
  const value = async () => read(first)

  it('loses no acknowledged unit and accepts no stale write', async () => {
    const guards = connections.map((db) => fenceSqlite(db))
    const guard = (worker: number) => guards[worker] as (typeof guards)[0]
    const result = await run(
      {
        read: (hold, worker) => guard(worker).with(hold, (tx) => read(tx)),
        write: (hold, n, worker) => guard(worker).with(hold, (tx) => write(tx, n)),
        value,
      },
      UNITS_FEW,
      5,
    )
    expect(result.value).toBe(result.acknowledged)
    expect(result.refused).toBeGreaterThan(10)
    expect(result.acknowledged).toBeGreaterThan(UNITS_FEW / 20)
  }, 60_000)

  it('does lose units without a guard: the run can fail', async () => {
    write(first, 0)
    const result = await run(
      { read: async () => read(first), write: async (_hold, n) => write(first, n), value },
      UNITS_FEW,
      6,
    )
    expect(result.acknowledged).toBe(UNITS_FEW)
    expect(result.value).toBeLessThan(UNITS_FEW)
  }, 60_000)
})
