import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { findExecutable, type Service, start, temporaryFolder } from './process.js'

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
  /** Where the data folder comes from; default: a new one. */
  readonly data?: DataSource
}

/**
 * `standby`: streams from that server, asynchronously. `backup`: was copied from that server while it ran, and knows nothing
 * of it. `folder`: a copy of the data folder of a server that has ended.
 */
export type DataSource =
  | { readonly kind: 'standby' | 'backup'; readonly of: Service }
  | { readonly kind: 'folder'; readonly path: string }

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

/** The command that fills a data folder. */
function fill(bin: string, data: string, source: DataSource | undefined): [string, string[]] {
  if (source === undefined) {
    return [
      join(bin, 'initdb'),
      ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
    ]
  }
  if (source.kind === 'folder') return ['cp', ['-a', `${source.path}/.`, data]]
  const from = ['-h', source.of.host, '-p', String(source.of.port), '-U', 'postgres']
  const how = ['-X', 'stream', '-c', 'fast', '--no-sync', ...(source.kind === 'standby' ? ['-R'] : [])]
  return [join(bin, 'pg_basebackup'), ['-D', data, ...from, ...how]]
}

/** Makes a standby a primary, with a timeline of its own. */
export async function promote(standby: Postgres): Promise<void> {
  const args = ['promote', '-D', join(standby.folder, 'data'), '-t', '60']
  await exec(join(findPostgres() ?? '', 'pg_ctl'), args, { ...(await serverUser()), cwd: standby.folder })
}

export interface Dump extends Disposable {
  restore(target: Service): Promise<void>
}

/** Copies a schema from one server to another by pg_dump, at two moments: the dump is taken now, and restored by `restore`. */
export async function dump(server: Service, schema: string): Promise<Dump> {
  const bin = findPostgres() ?? ''
  const folder = temporaryFolder('dump')
  const file = join(folder, 'dump.sql')
  const at = ({ host, port }: Service) => ['-h', host, '-p', String(port), '-U', 'postgres']
  await exec(join(bin, 'pg_dump'), [...at(server), '-n', schema, '-f', file, 'postgres'])
  return {
    async restore(target) {
      await exec(join(bin, 'psql'), [...at(target), '-q', '-v', 'ON_ERROR_STOP=1', '-f', file, 'postgres'])
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
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
    // Without fsync it costs next to nothing.
    synchronous_commit: 'on',
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
      const run = { ...user, cwd: folder, env: { ...process.env, LC_ALL: 'C' } }
      await exec(...fill(bin, data, options.data), run)
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
