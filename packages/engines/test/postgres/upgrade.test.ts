import { readFileSync } from 'node:fs'
import { createLocksOn, type Locks } from '@leasehold/client'
import { floorAt } from '@leasehold/core'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startPostgres } from '../../../../tests/services/postgres.js'
import type { Service } from '../../../../tests/services/process.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { postgresEngine, postgresSql } from '../../src/postgres.js'

/** What a client of version 1 printed. */
const VERSION_1 = readFileSync(new URL('./schema-v1.sql', import.meta.url), 'utf8')
const APPEND = 'append(p_index => $1, p_nonce => $2, p_epoch => 1, p_elapsed_ms => 0, p_entry => $3, p_commands => $4'

describeWith('PostgreSQL', 'tables of version 1', () => {
  let server: Service
  let pool: pg.Pool
  let schemas = 0
  const open: Locks[] = []

  beforeAll(async () => {
    server = await startPostgres()
    pool = new pg.Pool({ connectionString: server.url, max: 8 })
  })
  afterEach(async () => {
    for (const locks of open.splice(0)) await locks.close()
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  async function client(S: string): Promise<Locks> {
    const locks = createLocksOn(await postgresEngine(`${server.url}?schema=${S}`), { connectTimeout: '30s' })
    open.push(locks)
    return locks
  }

  async function old(): Promise<string> {
    const S = `old${++schemas}`
    await pool.query(VERSION_1.replaceAll('"SCHEMA"', S))
    return S
  }

  /** Appends as a client of version 1 does. */
  const append = (S: string, index: number, nonce: number | string) =>
    pool.query(
      `SELECT * FROM ${S}.${APPEND}, p_tick => false, p_channel => '', p_checked_index => 0, p_checked_hash => '')`,
      [index, nonce, String(index + 100), Buffer.of(0)],
    )

  it('are refused, with the name of the command that upgrades them', async () => {
    const S = await old()
    await expect((await client(S)).connect()).rejects.toMatchObject({
      code: 'mismatch',
      hint: expect.stringContaining('leasehold engines sql postgres'),
    })
  })

  it('are upgraded by the migration, which can be run again: the log stays, and a floor follows', async () => {
    const S = await old()
    await append(S, 0, 0)
    await append(S, 1, 100)
    const before = floorAt(Date.now()) as number
    await Promise.all([1, 2].map(() => pool.query(`SELECT pg_advisory_xact_lock(1); ${postgresSql({ schema: S })}`)))
    await pool.query(postgresSql({ schema: S }))
    const { rows } = await pool.query(`SELECT index::int, level, floor FROM ${S}.log ORDER BY index`)
    expect(rows).toEqual([
      { index: 1, level: null, floor: null },
      { index: 2, level: null, floor: null },
      { index: 3, level: 2, floor: expect.any(String) },
    ])
    const [one, two] = [await client(S), await client(S)]
    const hold = await one.acquire('a')
    expect(hold.token >> 48n).toBe(1n)
    expect(Number(hold.token & (2n ** 48n - 1n))).toBeGreaterThan(before)
    await hold.release()
    expect((await two.acquire('a')).token).toBeGreaterThan(hold.token)
    const columns = (schema: string) =>
      pool.query(
        `SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
         WHERE table_schema = '${schema}' ORDER BY 1, 2`,
      )
    await pool.query(postgresSql({ schema: `${S}new` }))
    expect((await columns(S)).rows).toEqual((await columns(`${S}new`)).rows)
  })

  it('are no longer written by a client of version 1, nor by its call that was waiting for the migration', async () => {
    const S = await old()
    await append(S, 0, 0)
    const migration = await pool.connect()
    await migration.query('BEGIN')
    await migration.query(postgresSql({ schema: S }))
    const waiting = [
      append(S, 1, 100),
      pool.query(`SELECT * FROM ${S}.since(0, 0)`),
      pool.query(`SELECT * FROM ${S}.raise_epoch(9, 9, '')`),
    ].map((call) =>
      call.then(
        () => 'done',
        (error: { code?: string }) => error.code,
      ),
    )
    const locks = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await expect.poll(async () => (await pool.query(locks)).rows[0].n).toBe(3)
    await migration.query('COMMIT')
    migration.release()
    for (const outcome of await Promise.all(waiting)) expect(outcome).toMatch(/^42/)
    const [{ nonce }] = (await pool.query(`SELECT nonce FROM ${S}.head`)).rows
    for (const call of [
      () => append(S, 2, nonce),
      () => pool.query(`SELECT * FROM ${S}.since(1, 100)`),
      () => pool.query(`SELECT ${S}.compact(1, 100, '')`),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: '42883' })
    }
    const { rows } = await pool.query(`SELECT epoch::int, version FROM ${S}.head`)
    expect(rows).toEqual([{ epoch: 1, version: 2 }])
  })
})
