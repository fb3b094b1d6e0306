import { StaleTokenError } from '@leasehold/core'
import { guardSql } from '@leasehold/fence/migrations'
import { fence } from '@leasehold/fence/pg'
import { fence as fenceJs } from '@leasehold/fence/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdOf } from '../../../packages/fence/test/support/holds.js'
import { findPgbouncer, startPgbouncer } from '../../services/pgbouncer.js'
import { findPostgres, startPostgres } from '../../services/postgres.js'
import type { Service } from '../../services/process.js'

const SESSIONS = 3
const CLIENTS = 12
const missing = findPostgres() === undefined ? 'PostgreSQL' : findPgbouncer() === undefined ? 'PgBouncer' : undefined
const title = 'guards behind a transaction pooler'

describe.skipIf(missing !== undefined)(missing ? `${title} [skipped: ${missing} is not installed]` : title, () => {
  let server: Service
  let pooler: Service
  let pool: pg.Pool
  let sql: postgres.Sql
  beforeAll(async () => {
    server = await startPostgres()
    pooler = await startPgbouncer(server, SESSIONS)
    pool = new pg.Pool({ connectionString: pooler.url, max: CLIENTS })
    sql = postgres(pooler.url, { max: CLIENTS, prepare: false, onnotice: () => {} })
    await pool.query(guardSql('pg'))
    await pool.query('CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)')
    await pool.query(guardSql('pg', { form: 'trigger', on: 'counter', resource: 'counter/{id}' }))
  })
  afterAll(async () => {
    await pool.end()
    await sql.end()
    await pooler.stop()
    await server.stop()
  })

  it('opens and writes while other transactions use the same sessions, and leaves nothing in them', async () => {
    const [guard, guardJs] = [fence(pool), fenceJs(sql)]
    const pids = new Set<number>()
    const insert = async (id: number) =>
      await guard.with(holdOf(33n, `counter/${id}`), async (tx) => {
        pids.add((await tx.query('SELECT pg_backend_pid() AS pid')).rows[0].pid as number)
        // The first one stays until another one has come, for a while: that one has a session of its own.
        for (let look = 0; pids.size < 2 && look < 200; look++) await tx.query('SELECT pg_sleep(0.05)')
        await tx.query('INSERT INTO counter VALUES ($1, 0)', [id])
      })
    await Promise.all(Array.from({ length: CLIENTS }, (_, id) => insert(id)))
    expect(pids.size).toBeGreaterThan(1)
    expect(pids.size).toBeLessThanOrEqual(SESSIONS)
    const add = (id: number, token: bigint) =>
      guardJs.with(
        holdOf(token, `counter/${id}`),
        async (tx) => await tx`UPDATE counter SET n = n + 1 WHERE id = ${id}`,
      )
    for (let round = 0; round < 5; round++) {
      await Promise.all(Array.from({ length: CLIENTS }, (_, id) => add(id, 34n)))
      // Not opened in this transaction, whatever the session did before.
      await expect(pool.query('UPDATE counter SET n = 0 WHERE id = 1')).rejects.toMatchObject({ code: 'LH001' })
    }
    await expect(insert(1)).rejects.toThrow(StaleTokenError)
    await expect(add(2, 33n)).rejects.toThrow(StaleTokenError)
    const { rows } = await pool.query('SELECT min(n)::int AS least, max(n)::int AS most FROM counter')
    expect(rows).toEqual([{ least: 5, most: 5 }])
  })
})
