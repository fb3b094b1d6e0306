import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.js'
import { findExecutable, type Service, start, temporaryFolder } from './process.js'

/** The path of `etcd`; undefined when it is not installed. */
export function findEtcd(): string | undefined {
  return findExecutable('etcd')
}

export interface EtcdOptions {
  /** Further arguments, such as `['--quota-backend-bytes', '16777216']`. */
  readonly args?: readonly string[]
  /** Files for TLS towards clients. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

async function probe(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(1_000) })
  const body = await answer.text()
  if (!answer.ok || !body.includes('true')) throw new Error(body)
}

function executable(): string {
  const file = findEtcd()
  if (file === undefined) throw new Error('etcd is not installed (Debian: etcd-server)')
  return file
}

function addresses(folder: string, name: string, client: string, peer: string): string[] {
  return [
    ...['--name', name, '--data-dir', folder, '--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--log-level', 'error', '--logger', 'zap'],
  ]
}

/** Starts an etcd of its own, one member, on 127.0.0.1. `url` is the client URL. */
export async function startEtcd(options: EtcdOptions = {}): Promise<Service> {
  const file = executable()
  const { tls } = options
  const scheme = tls === undefined ? 'http' : 'https'
  let metricsPort = 0
  return start({
    name: 'etcd',
    stopSignals: ['SIGTERM'],
    url: (port) => `${scheme}://127.0.0.1:${port}`,
    probe: (port) => probe(tls === undefined ? port : metricsPort),
    async command(folder, port) {
      const peer = `http://127.0.0.1:${await freePort()}`
      const args = addresses(join(folder, `data-${port}`), 'one', `${scheme}://127.0.0.1:${port}`, peer)
      if (tls !== undefined) {
        metricsPort = await freePort()
        args.push('--cert-file', tls.cert, '--key-file', tls.key)
        args.push('--listen-metrics-urls', `http://127.0.0.1:${metricsPort}`)
      }
      return { file, args: [...args, '--initial-cluster', `one=${peer}`, ...(options.args ?? [])] }
    },
  })
}

/** A member of a cluster, which can be killed and started again on its data. */
export class EtcdMember {
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(
    readonly port: number,
    private readonly args: readonly string[],
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  start(): void {
    if (this.#child) return
    const child = spawn(executable(), this.args, { stdio: 'ignore' })
    this.#child = child
    const killed = () => child.kill('SIGKILL')
    process.once('exit', killed)
    this.#exited = new Promise((resolve) => {
      const ended = (): void => {
        process.off('exit', killed)
        if (this.#child === child) this.#child = undefined
        resolve()
      }
      child.once('exit', ended)
      child.once('error', ended)
    })
  }

  /** `SIGSTOP` and `SIGCONT` pause and resume it; every other signal ends it. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    this.#child?.kill(signal)
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await this.#exited
  }

  /** Whether it leads, as it says itself; undefined: it does not answer. */
  async leads(): Promise<boolean | undefined> {
    try {
      const init = { method: 'POST', body: '{}', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }
      const answer = await fetch(`${this.url}/v3/maintenance/status`, init)
      const { header, leader } = (await answer.json()) as { header?: { member_id?: string }; leader?: string }
      return header?.member_id === undefined ? undefined : header.member_id === leader
    } catch {
      return undefined
    }
  }
}

const PROBE_TIMEOUT_MS = 1_000
const CLUSTER_START_TIMEOUT_MS = 60_000

export interface EtcdCluster {
  readonly members: readonly EtcdMember[]
  /** The member that leads now. */
  leader(): Promise<EtcdMember>
  /** Throws the history away, up to now. */
  compact(): Promise<void>
  stop(): Promise<void>
}

/** Starts an etcd of several members on 127.0.0.1, with all its flushes. */
export async function startEtcdCluster(count = 3, options: EtcdOptions = {}): Promise<EtcdCluster> {
  executable()
  const folder = temporaryFolder('etcd')
  const places: { name: string; port: number; peer: string }[] = []
  for (let i = 0; i < count; i++) {
    places.push({ name: `e${i + 1}`, port: await freePort(), peer: `http://127.0.0.1:${await freePort()}` })
  }
  const list = places.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const members = places.map(({ name, port, peer }) => {
    const args = addresses(join(folder, name), name, `http://127.0.0.1:${port}`, peer)
    return new EtcdMember(port, [...args, '--initial-cluster', list, ...(options.args ?? [])])
  })
  const stop = async () => {
    await Promise.all(
      members.map(async (member) => {
        await member.signal('SIGCONT')
        await member.signal('SIGKILL')
      }),
    )
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const leader = async (): Promise<EtcdMember> => {
    const end = performance.now() + CLUSTER_START_TIMEOUT_MS
    while (performance.now() < end) {
      for (const member of members) if ((await member.leads()) === true) return member
      await sleep(50)
    }
    throw new Error('no member leads')
  }
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${(await leader()).url}${path}`, { method: 'POST', body: JSON.stringify(body) })
    return (await answer.json()) as Record<string, unknown>
  }
  const compact = async (): Promise<void> => {
    const { header } = (await post('/v3/kv/range', { key: 'AA==' })) as { header: { revision: string } }
    await post('/v3/kv/compaction', { revision: header.revision })
  }
  for (const member of members) member.start()
  try {
    await leader()
    await Promise.all(
      members.map(async ({ port }) => {
        const end = performance.now() + CLUSTER_START_TIMEOUT_MS
        for (;;) {
          try {
            return await probe(port)
          } catch (error) {
            if (performance.now() > end) throw error
            await sleep(50)
          }
        }
      }),
    )
  } catch (error) {
    await stop()
    throw error
  }
  return { members, leader, compact, stop }
}
