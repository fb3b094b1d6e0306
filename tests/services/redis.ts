import { connect } from 'node:net'
import { findExecutable, type Service, start } from './process.js'

/** The path of `redis-server` (or `valkey-server`); undefined when it is not installed. */
export function findRedis(): string | undefined {
  return findExecutable('redis-server') ?? findExecutable('valkey-server')
}

export interface RedisOptions {
  /** Append-only file: `always` flushes before every answer, `no` (the default) keeps everything in memory only. */
  readonly appendfsync?: 'always' | 'everysec' | 'no'
  /** Further arguments, such as `['--maxmemory', '10mb']`. */
  readonly args?: readonly string[]
}

function probe(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
    socket.once('data', (data) => {
      socket.end()
      if (data.toString('latin1').startsWith('+PONG')) resolve()
      else reject(new Error(data.toString('latin1')))
    })
  })
}

/** Starts a Redis of its own on 127.0.0.1. */
export async function startRedis(options: RedisOptions = {}): Promise<Service> {
  const file = findRedis()
  if (file === undefined) throw new Error('Redis is not installed (Debian: redis-server)')
  const appendfsync = options.appendfsync ?? 'no'
  return start({
    name: 'redis',
    stopSignals: ['SIGTERM'],
    url: (port) => `redis://127.0.0.1:${port}`,
    probe,
    async command(folder, port) {
      const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
      args.push('--appendonly', appendfsync === 'no' ? 'no' : 'yes', '--appendfsync', appendfsync)
      return { file, args: [...args, ...(options.args ?? [])] }
    },
  })
}
