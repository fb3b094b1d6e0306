import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findExecutable } from '../../tests/services/process.js'
import { endChild, startChild } from '../harness/children.js'
import type { System } from '../harness/comparison.js'
import { freePort } from '../../tests/services/ports.js'
import { untilReady } from './peer.js'

const JARS = '/usr/share/java'
const START_LIMIT_MS = 30_000
const SESSION_MS = 30_000

/** The server's own library in Debian; its manifest names the others. */
export const ZOOKEEPER_JAR = existsSync(JARS)
  ? (readdirSync(JARS).find((name) => /^zookeeper-\d[\d.]*\.jar$/.test(name)) ?? '')
  : ''

export function zookeeperProblem(): string | undefined {
  if (findExecutable('java') === undefined) return 'java is not installed (Debian: zookeeper)'
  return ZOOKEEPER_JAR === '' ? 'ZooKeeper is not installed (Debian: zookeeper)' : undefined
}

type Callback<T> = (error: Error | null, value: T) => void
interface Client {
  connect(): void
  close(): void
  once(event: 'connected', listener: () => void): void
  getState(): unknown
  create(path: string, mode: number, done: Callback<string>): void
  remove(path: string, done: Callback<void>): void
  getChildren(path: string, done: Callback<string[]>): void
  exists(path: string, watcher: () => void, done: Callback<object | null>): void
}
interface Library {
  createClient(hosts: string, options: Record<string, number>): Client
  readonly CreateMode: {
    readonly PERSISTENT: number
    readonly EPHEMERAL: number
    readonly EPHEMERAL_SEQUENTIAL: number
  }
}

/** One server that flushes every transaction, and the lock of its documentation. */
export async function startZooKeeper(): Promise<System> {
  const library = createRequire(import.meta.url)('node-zookeeper-client') as Library
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-zookeeper-'))
  const port = await freePort()
  const config = join(folder, 'zoo.cfg')
  const settings = [`dataDir=${folder}/data`, `clientPort=${port}`, 'clientPortAddress=127.0.0.1', 'tickTime=2000']
  writeFileSync(config, [...settings, 'admin.enableServer=false', 'maxClientCnxns=0', 'forceSync=yes', ''].join('\n'))
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
  const child = startChild('java', ['-Xmx512m', '-cp', `${folder}:${JARS}/*`, main, config], { stdio: 'ignore' })
  const client = library.createClient(`127.0.0.1:${port}`, { sessionTimeout: SESSION_MS, retries: 3 })
  const stop = async (): Promise<void> => {
    client.close()
    await endChild(child)
    rmSync(folder, { recursive: true, force: true })
  }
  const call = <T>(start: (done: Callback<T>) => void): Promise<T> =>
    new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value))))
  const { PERSISTENT, EPHEMERAL, EPHEMERAL_SEQUENTIAL } = library.CreateMode
  try {
    client.connect()
    await connected(client)
    for (const path of ['/own', '/one']) await call<string>((done) => client.create(path, PERSISTENT, done))
  } catch (error) {
    await stop()
    throw error
  }
  /** Waits until `path` is gone. */
  const gone = (path: string): Promise<void> =>
    new Promise((resolve, reject) => {
      client.exists(
        path,
        () => resolve(),
        (error, stat) => (error ? reject(error) : stat === null ? resolve() : undefined),
      )
    })
  const system = 'ZooKeeper'
  return {
    distinct: {
      system,
      async pair(task) {
        const start = performance.now()
        const path = `/own/${task}`
        await call<string>((done) => client.create(path, EPHEMERAL, done))
        await call<void>((done) => client.remove(path, done))
        return performance.now() - start
      },
    },
    oneName: {
      system,
      async pair() {
        const start = performance.now()
        const path = await call<string>((done) => client.create('/one/n-', EPHEMERAL_SEQUENTIAL, done))
        const own = path.slice('/one/'.length)
        for (;;) {
          const sorted = (await call<string[]>((done) => client.getChildren('/one', done))).sort()
          const place = sorted.indexOf(own)
          if (place === 0) break
          await gone(`/one/${sorted[place - 1]}`)
        }
        const granted = performance.now()
        await call<void>((done) => client.remove(path, done))
        return granted - start
      },
    },
    stop,
  }
}

function connected(client: Client): Promise<void> {
  let isUp = false
  client.once('connected', () => {
    isUp = true
  })
  const ask = (): Promise<void> => (isUp ? Promise.resolve() : Promise.reject(new Error('ZooKeeper does not answer')))
  return untilReady(ask, START_LIMIT_MS)
}
