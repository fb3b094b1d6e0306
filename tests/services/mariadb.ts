import { execFile } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findExecutable, type Service, start } from './process.js'

const exec = promisify(execFile)
const FOLDERS = ['/usr/sbin', '/usr/local/sbin']

/** The path of `mariadbd`; undefined when MariaDB is not installed. */
export function findMariadb(): string | undefined {
  return findExecutable('mariadbd', FOLDERS)
}

export interface MariadbOptions {
  /** Flush to disk at commit. Off by default: a throw-away server need not survive a power cut. */
  readonly fsync?: boolean
  /** Further arguments, such as `['--transaction-isolation=SERIALIZABLE']`. */
  readonly args?: readonly string[]
}

export interface Mariadb extends Service {
  readonly user: 'root'
  readonly database: 'test'
}

/** MariaDB does not like to run as root: the user that owns and runs it instead. */
async function serverUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const user of ['mysql', 'nobody']) {
    try {
      const uid = Number((await exec('id', ['-u', user])).stdout)
      const gid = Number((await exec('id', ['-g', user])).stdout)
      return { uid, gid }
    } catch {
      // try the next one
    }
  }
  throw new Error('no user to run MariaDB as')
}

/** Resolves when the server greets. */
function probe(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(1_000, () => socket.destroy(new Error('no greeting')))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once('data', (data) => {
      socket.end()
      // Behind the packet's header: 10 is the version of the protocol, 255 an error.
      if (data[4] === 10) resolve()
      else reject(new Error(data.toString('latin1')))
    })
  })
}

/**
 * Starts a MariaDB of its own on 127.0.0.1, where `root` needs no password, with an empty database `test`.
 * @example
 * const db = await startMariadb()
 * afterAll(() => db.stop())
 * const pool = mysql.createPool(db.url)
 */
export async function startMariadb(options: MariadbOptions = {}): Promise<Mariadb> {
  const file = findMariadb()
  const install = findExecutable('mariadb-install-db', ['/usr/bin'])
  if (file === undefined || install === undefined) throw new Error('MariaDB is not installed (Debian: mariadb-server)')
  const user = await serverUser()
  const service = await start({
    name: 'mariadb',
    stopSignals: ['SIGTERM'],
    url: (port) => `mysql://root@127.0.0.1:${port}/test`,
    probe,
    async prepare(folder) {
      const data = join(folder, 'data')
      mkdirSync(data, { mode: 0o700 })
      if (user !== undefined) for (const path of [folder, data]) chownSync(path, user.uid, user.gid)
      const args = [
        '--no-defaults',
        `--datadir=${data}`,
        '--auth-root-authentication-method=normal',
        '--skip-name-resolve',
      ]
      await exec(install, args, { ...user, cwd: folder })
      mkdirSync(join(data, 'test'), { mode: 0o700, recursive: true })
      if (user !== undefined) chownSync(join(data, 'test'), user.uid, user.gid)
    },
    async command(folder, port) {
      const flush = options.fsync === true ? '1' : '0'
      const args = ['--no-defaults', `--datadir=${join(folder, 'data')}`, `--port=${port}`, '--bind-address=127.0.0.1']
      args.push(`--socket=${join(folder, 'socket')}`, `--pid-file=${join(folder, 'pid')}`, '--skip-name-resolve')
      args.push(
        `--innodb-flush-log-at-trx-commit=${flush}`,
        '--innodb-buffer-pool-size=32M',
        '--innodb-log-file-size=16M',
      )
      return { file, args: [...args, ...(options.args ?? [])], ...user }
    },
  })
  return { ...service, user: 'root', database: 'test' }
}
