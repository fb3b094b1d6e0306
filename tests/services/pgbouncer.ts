import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findExecutable, type Service, start } from './process.js'
import { probe, serverUser } from './postgres.js'

/** The path of `pgbouncer`; undefined when it is not installed. */
export function findPgbouncer(): string | undefined {
  return findExecutable('pgbouncer', ['/usr/sbin'])
}

/** Starts a PgBouncer in transaction mode in front of a PostgreSQL: each transaction gets any of `connections` sessions. */
export async function startPgbouncer(target: Service, connections: number): Promise<Service> {
  const file = findPgbouncer()
  if (file === undefined) throw new Error('PgBouncer is not installed (Debian: pgbouncer)')
  const user = await serverUser()
  return start({
    name: 'pgbouncer',
    stopSignals: ['SIGINT', 'SIGTERM'],
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    probe,
    async command(folder, port) {
      const settings = {
        listen_addr: '127.0.0.1',
        listen_port: port,
        unix_socket_dir: '',
        auth_type: 'any',
        pool_mode: 'transaction',
        default_pool_size: connections,
      }
      const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
      const path = join(folder, 'pgbouncer.ini')
      const server = `postgres = host=127.0.0.1 port=${target.port} user=postgres`
      writeFileSync(path, `[databases]\n${server}\n[pgbouncer]\n${lines.join('\n')}\n`)
      if (user !== undefined) for (const one of [folder, path]) chownSync(one, user.uid, user.gid)
      return { file, args: [path], ...user }
    },
  })
}
