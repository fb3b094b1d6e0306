import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { findExecutable, type Service, start } from './process.js'

const exec = promisify(execFile)
const DEBIAN_FOLDER = '/usr/lib/postgresql'

/** The folder with `initdb` and `postgres`, the newest version first; undefined when PostgreSQL is not installed. */
export function findPostgres(): string | undefined {
  if (existsSync(DEBIAN_FOLDER)) {
    const versions = readdirSync(DEBIAN_FOLDER).sort((a, b) => Number(b) - Number(a))
    for (const version of versions) {
      const folder = join(DEBIAN_FOLDER, version, 'bin')
      if (existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) return folder
    }
  }
  const initdb = findExecutable('initdb')
  return initdb === undefined ? undefined : dirname(initdb)
}

export interface PostgresOptions {
  /** Flush to disk at commit. Off by default: a throw-away server need not survive a power cut. */
  readonly fsync?: boolean
  /** Further settings, such as `{ max_connections: '50' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface Postgres extends Service {
  readonly user: 'postgres'
  readonly database: 'postgres'
}

/** PostgreSQL refuses to run as root: the user that owns and runs it instead. */
export async function serverUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const user of ['postgres', 'nobody']) {
    try {
      const uid = Number((await exec('id', ['-u', user])).stdout)
      const gid = Number((await exec('id', ['-g', user])).stdout)
      return { uid, gid }
    } catch {
      // try the next one
    }
  }
  throw new Error('no user to run PostgreSQL as: it refuses root')
}

/** Resolves when the server answers a start-up packet with something else than "still starting". */
export function probe(port: number): Promise<void> {
  const body = Buffer.from('\0\x03\0\0user\0postgres\0database\0postgres\0\0', 'latin1')
  const packet = Buffer.alloc(4 + body.length)
  packet.writeInt32BE(packet.length)
  body.copy(packet, 4)
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(packet))
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once('data', (data) => {
      socket.end(Buffer.from([0x58, 0, 0, 0, 4]))
      if (data[0] === 0x52) resolve()
      else reject(new Error(data.toString('latin1')))
    })
  })
}

/**
 * Starts a PostgreSQL of its own, with the user `postgres` and no password, on 127.0.0.1.
 * @example
 * const pg = await startPostgres()
 * afterAll(() => pg.stop())
 * const pool = new Pool({ connectionString: pg.url })
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const bin = findPostgres()
  if (bin === undefined) throw new Error('PostgreSQL is not installed (Debian: postgresql)')
  const user = await serverUser()
  const fsync = options.fsync === true ? 'on' : 'off'
  const settings = {
    fsync,
    synchronous_commit: fsync,
    full_page_writes: fsync,
    unix_socket_directories: '',
    listen_addresses: '127.0.0.1',
    shared_buffers: '32MB',
    autovacuum: 'off',
    ...options.settings,
  }
  const service = await start({
    name: 'postgres',
    // First wait for clients that are just leaving, then send the others away.
    stopSignals: ['SIGTERM', 'SIGINT'],
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    probe,
    async prepare(folder) {
      const data = join(folder, 'data')
      mkdirSync(data, { mode: 0o700 })
      if (user !== undefined) for (const path of [folder, data]) chownSync(path, user.uid, user.gid)
      await exec(
        join(bin, 'initdb'),
        ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
        {
          ...user,
          cwd: folder,
          env: { ...process.env, LC_ALL: 'C' },
        },
      )
    },
    async command(folder, port) {
      const args = ['-D', join(folder, 'data'), '-p', String(port)]
      for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`)
      return { file: join(bin, 'postgres'), args, env: { LC_ALL: 'C' }, ...user }
    },
  })
  // Not spread: its pid is that of the process that runs now.
  return Object.assign(service, { user: 'postgres', database: 'postgres' } as const)
}
