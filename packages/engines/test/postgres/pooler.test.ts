import { createLocksOn } from '@leasehold/client'
import pg from 'pg'
import { expect, it } from 'vitest'
import { findPgbouncer, startPgbouncer } from '../../../../tests/services/pgbouncer.js'
import { startPostgres } from '../../../../tests/services/postgres.js'
import { describeWith } from '../../../../tests/services/suite.js'
import { postgresEngine } from '../../src/postgres.js'

describeWith('PostgreSQL', 'the engine on PostgreSQL behind a pooler of transactions', () => {
  const missing = findPgbouncer() === undefined
  it.skipIf(missing)(
    `${missing ? '[skipped: PgBouncer is not installed] ' : ''}gives locks to clients that share three sessions, by asking, and by a direct line for notifications`,
    async () => {
      await using server = await startPostgres()
      await using pooler = await startPgbouncer(server, 3)
      const direct = `${pooler.url}?listen=${encodeURIComponent(server.url)}`
      const clients = await Promise.all(
        [pooler.url, pooler.url, direct, direct].map(async (url) => createLocksOn(await postgresEngine(url))),
      )
      const tokens: bigint[] = []
      const work = clients.map(async (locks) => {
        for (let i = 0; i < 5; i++) await locks.request('a', ({ token }) => void tokens.push(token))
      })
      await Promise.all(work)
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)))
      // A statement that was prepared on another session would have failed.
      const pool = new pg.Client({ connectionString: server.url })
      await pool.connect()
      const kept = async () =>
        Number((await pool.query("SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'")).rows[0].n)
      await expect.poll(kept).toBe(0)
      await pool.end()
      await Promise.all(clients.map((locks) => locks.close()))
    },
  )
})
