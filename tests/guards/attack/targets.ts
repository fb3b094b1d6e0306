import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { connect } from 'leasehold'
import { fence as fenceFile } from '../../../packages/fence/src/fs.js'
import { fence as fenceRedis } from '../../../packages/fence/src/redis.js'
import { start } from '../../services/process.js'
import { startRedis } from '../../services/redis.js'
import { attack, type AttackOptions, type AttackResult } from './attack.js'

const BIN = fileURLToPath(new URL('../../../packages/leasehold/bin/leasehold.js', import.meta.url))
const LOCK = 'attack'
export const STORES = ['redis', 'fs', 'register'] as const
export type Store = (typeof STORES)[number]
/** Long enough for most units of the store, too short for those that stumble. */
const LEASE_MS = { redis: 6, fs: 20, register: 25 } as const

/** Runs an attack on a fresh store. Answers also the value that is there at the end. */
export async function attackOn(
  store: Store,
  options: Pick<AttackOptions, 'guarded' | 'units' | 'seed' | 'processes'>,
): Promise<AttackResult & { readonly value: number }> {
  const all = { ...options, store, leaseMs: LEASE_MS[store] }
  if (store === 'redis') return await onRedis(all)
  return store === 'fs' ? await onFile(all) : await onRegister(all)
}

type Options = Omit<AttackOptions, 'target'>

async function onRedis(options: Options) {
  const server = await startRedis()
  const redis = new Redis(server.url)
  try {
    const result = await attack({ ...options, target: server.url })
    const key = fenceRedis(redis).keyOf(LOCK)
    return { ...result, value: Number(options.guarded ? await redis.hget(key, 'value') : await redis.get(LOCK)) }
  } finally {
    redis.disconnect()
    await server.stop()
  }
}

async function onFile(options: Options) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-attack-'))
  const target = join(folder, 'counter')
  try {
    const result = await attack({ ...options, target })
    const bytes = options.guarded ? await fenceFile(target).latest() : await readFile(target)
    return { ...result, value: Number(new TextDecoder().decode(bytes ?? undefined)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A Leasehold of its own. */
export function startLeasehold() {
  return start({
    name: 'leasehold',
    stopSignals: ['SIGTERM'],
    url: (port) => `http://127.0.0.1:${port}`,
    async probe(port) {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
      if (!answer.ok) throw new Error(`not ready: ${answer.status}`)
    },
    async command(folder, port) {
      const listen = ['--listen', `127.0.0.1:${port}`, '--log-level', 'silent']
      return { file: process.execPath, args: [BIN, 'serve', '--data', join(folder, 'data'), ...listen] }
    },
  })
}

async function onRegister(options: Options) {
  const server = await startLeasehold()
  try {
    const locks = await connect(server.url)
    const thief = setInterval(() => void locks.steal(LOCK, { reason: 'attack' }).catch(() => {}), options.leaseMs)
    const result = await attack({ ...options, target: server.url }).finally(() => clearInterval(thief))
    const value = Number((await locks.register('attack/counter').get())?.value)
    await locks.close()
    return { ...result, value }
  } finally {
    await server.stop()
  }
}
