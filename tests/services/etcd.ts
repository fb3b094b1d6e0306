import { join } from 'node:path'
import { findExecutable, freePort, type Service, start } from './process.js'

/** The path of `etcd`; undefined when it is not installed. */
export function findEtcd(): string | undefined {
  return findExecutable('etcd')
}

export interface EtcdOptions {
  /** Further arguments, such as `['--quota-backend-bytes', '16777216']`. */
  readonly args?: readonly string[]
}

async function probe(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(1_000) })
  const body = await answer.text()
  if (!answer.ok || !body.includes('true')) throw new Error(body)
}

/** Starts an etcd of its own, one member, on 127.0.0.1. `url` is the client URL. */
export async function startEtcd(options: EtcdOptions = {}): Promise<Service> {
  const file = findEtcd()
  if (file === undefined) throw new Error('etcd is not installed (Debian: etcd-server)')
  return start({
    name: 'etcd',
    stopSignals: ['SIGTERM'],
    url: (port) => `http://127.0.0.1:${port}`,
    probe,
    async command(folder, port) {
      const client = `http://127.0.0.1:${port}`
      const peer = `http://127.0.0.1:${await freePort()}`
      const args = ['--name', 'one', '--data-dir', join(folder, `data-${port}`)]
      args.push('--listen-client-urls', client, '--advertise-client-urls', client)
      args.push('--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer)
      args.push('--initial-cluster', `one=${peer}`, '--log-level', 'error', '--logger', 'zap')
      return { file, args: [...args, ...(options.args ?? [])] }
    },
  })
}
