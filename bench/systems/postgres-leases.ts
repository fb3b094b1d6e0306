import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '../../tests/services/postgres.js'
import type { System } from '../harness/comparison.js'
import { subjects } from './engines/postgres.js'

const CONNECTIONS = 32
const RETRY_MS = 10
const TABLE = `CREATE TABLE lease (name text PRIMARY KEY, owner text, token bigint NOT NULL, expires timestamptz NOT NULL)`
const TAKE = `INSERT INTO lease VALUES ($1, $2, 1, now() + interval '30 s') ON CONFLICT (name) DO UPDATE
  SET owner = $2, token = lease.token + 1, expires = excluded.expires WHERE lease.owner IS NULL OR lease.expires < now()`
const RELEASE = 'UPDATE lease SET owner = NULL WHERE name = $1 AND owner = $2'

/** The lock that people write themselves: a row with owner, token and time of expiry. */
export async function startPostgresLeases(): Promise<System> {
  const server = await startPostgres({ fsync: true, settings: { max_connections: '60', autovacuum: 'on' } })
  const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS })
  const stop = async (): Promise<void> => {
    await pool.end()
    await server.stop()
  }
  try {
    await pool.query(TABLE)
  } catch (error) {
    await stop()
    throw error
  }
  let serial = 0
  const { distinct, oneName } = subjects('PostgreSQL row lease', async (name) => {
    const owner = `bench/${serial++}`
    while ((await pool.query({ name: 'take', text: TAKE, values: [name, owner] })).rowCount === 0) await sleep(RETRY_MS)
    return () => pool.query({ name: 'release', text: RELEASE, values: [name, owner] })
  })
  return { distinct, oneName, stop }
}
