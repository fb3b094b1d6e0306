import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { endChild, startChild } from '../harness/children.js'
import { subjects } from './engines/postgres.js'
import { freePort } from '../../tests/services/ports.js'

const TTL_MS = 30_000
/** How clients of the usual lock libraries wait for a taken lock: they ask again after a short while. */
const RETRY_MS = 10
const START_LIMIT_MS = 5_000
const COMPARE_AND_DELETE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`

interface WithUnlock {
  unlock(key: string, value: string): Promise<number>
}

/** A real redis-server, and the usual lock on it: SET NX PX, compare-and-delete, retry. `always`: it flushes every write. */
export async function startRedis(appendfsync: 'always' | 'everysec' = 'always') {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-redis-'))
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  const durable = ['--appendonly', 'yes', '--appendfsync', appendfsync, '--daemonize', 'no']
  const child = startChild('redis-server', [...args, ...durable], { stdio: ['ignore', 'ignore', 'inherit'] })
  const redis = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    enableAutoPipelining: true,
    retryStrategy: () => 50,
  })
  redis.on('error', () => {})
  redis.defineCommand('unlock', { numberOfKeys: 1, lua: COMPARE_AND_DELETE })
  const locking = redis as Redis & WithUnlock
  const stop = async () => {
    redis.disconnect()
    await endChild(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await ready(redis)
  } catch (error) {
    await stop()
    throw error
  }

  const { distinct, oneName } = subjects(`Redis ${appendfsync}`, async (name) => {
    const value = randomBytes(16).toString('hex')
    while ((await locking.set(name, value, 'PX', TTL_MS, 'NX')) === null) await sleep(RETRY_MS)
    return () => locking.unlock(name, value)
  })
  return { distinct, oneName, stop }
}

async function ready(redis: Redis): Promise<void> {
  const end = performance.now() + START_LIMIT_MS
  for (;;) {
    try {
      if (redis.status !== 'ready') await redis.connect()
      await redis.ping()
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await sleep(50)
    }
  }
}
