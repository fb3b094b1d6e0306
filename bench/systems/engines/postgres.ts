import pg from 'pg'
import { createLocks } from 'leasehold'
import { startPostgres } from '../../../tests/services/postgres.js'
import type { System } from '../../harness/comparison.js'
import type { Subject } from '../../harness/closed-loop.js'

const TASKS_MAX = 64

/**
 * A PostgreSQL that flushes every commit, and two ways to lock with it: ours, whose locks are durable, have tokens and take two
 * connections; and session advisory locks, which have neither, and take a connection for each that holds or waits.
 */
export async function postgresSystems(): Promise<readonly System[]> {
  const server = await startPostgres({ fsync: true, settings: { max_connections: '120', autovacuum: 'on' } })
  const locks = createLocks(server.url)
  const pool = new pg.Pool({ connectionString: server.url, max: TASKS_MAX })
  const ours = subjects('leasehold postgres://', async (name) => {
    const hold = await locks.acquire(name)
    return () => hold.release()
  })
  const theirs = subjects('pg advisory locks', async (name) => {
    const client = await pool.connect()
    await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [name])
    return async () => {
      await client.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [name])
      client.release()
    }
  })
  return [
    { ...ours, stop: () => locks.close() },
    {
      ...theirs,
      async stop() {
        await pool.end()
        await server.stop()
      },
    },
  ]
}

/** A task that gets the lock again and again while others wait keeps it no longer than this before it counts all the same. */
const ALONE_MS = 200

/** `take` acquires and resolves with the release. On one name an operation is a hand-off from one task to another. */
export function subjects(
  system: string,
  take: (name: string) => Promise<() => Promise<unknown>>,
): { readonly distinct: Subject; readonly oneName: Subject } {
  let last = -1
  return {
    distinct: {
      system,
      async pair(task) {
        const start = performance.now()
        const release = await take(`bench/${task}`)
        await release()
        return performance.now() - start
      },
    },
    oneName: {
      system,
      async pair(task) {
        const start = performance.now()
        for (;;) {
          const release = await take('bench/one')
          const granted = performance.now()
          const isHandOff = last !== task
          last = task
          await release()
          if (isHandOff || granted - start > ALONE_MS) return granted - start
        }
      },
    },
  }
}
