import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '../../services/postgres.js'
import { Proxy } from '../../services/proxy.js'
import type { EngineWorld } from '../engine-run.js'

/** A PostgreSQL that crashes, restarts, sends its clients away, and whose line breaks. */
export async function postgresWorld(): Promise<EngineWorld> {
  // A killed server must not lose what it has acknowledged; that the machine loses power is not played.
  const server = await startPostgres({ settings: { synchronous_commit: 'on', full_page_writes: 'on' } })
  const proxy = await Proxy.start(server.port)
  const sql = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    await client.query(text)
    await client.end()
  }
  const away = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold'"
  return {
    url: server.url.replace(`:${server.port}`, `:${proxy.port}`),
    faults: {
      'server killed': () => server.restart('SIGKILL'),
      'server restarted': () => server.restart('SIGINT'),
      'connections ended': () => sql(away),
      'listening ended': () => sql(`${away} AND query LIKE 'LISTEN%'`),
      'answers lost': async (random) => {
        proxy.mute()
        await sleep(random.between(100, 2_500))
        proxy.open()
      },
      'line shut': async (random) => {
        proxy.shut()
        await sleep(random.between(100, 4_500))
        proxy.open()
      },
    },
    async stop() {
      await proxy[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}
