import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Etcd3, EtcdLockFailedError } from 'etcd3'
import { endChild, startChild } from '../harness/children.js'
import type { Subject } from '../harness/closed-loop.js'
import { freePort } from '../../tests/services/ports.js'

const LEASE_S = 30
const START_LIMIT_MS = 20_000

/** A real etcd of `count` members with all its flushes. */
export async function startEtcdMembers(count: number) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-etcd-'))
  const members = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({
      name: `e${i + 1}`,
      client: `http://127.0.0.1:${await freePort()}`,
      peer: `http://127.0.0.1:${await freePort()}`,
    })),
  )
  const cluster = members.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const children = members.map(({ name, client, peer }) =>
    startChild(
      'etcd',
      [
        ...['--name', name, '--data-dir', join(folder, name), '--initial-cluster', cluster],
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
        ...['--log-level', 'error', '--logger', 'zap'],
      ],
      { stdio: 'ignore' },
    ),
  )
  const hosts = members.map((member) => member.client.replace('http://', ''))
  const client = new Etcd3({ hosts })
  const stop = async () => {
    client.close()
    await Promise.all(children.map((child) => endChild(child)))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    for (const child of children) child.once('error', () => {})
    await ready(client)
  } catch (error) {
    await stop()
    throw error
  }
  return { hosts, client, stop }
}

/** An etcd of its own, and the cheapest fair lock on it. */
export async function startEtcdCluster(count: number) {
  const { client, stop } = await startEtcdMembers(count)
  return { ...(await cheapestLock(client)), stop }
}

/**
 * The cheapest fair lock on an etcd: one transaction to take, one deletion to release, under one shared lease. On one
 * name: the queue of its own recipe, each waiter watching the one before it.
 */
export async function cheapestLock(client: Etcd3, system = 'etcd'): Promise<{ distinct: Subject; oneName: Subject }> {
  const lease = client.lease(LEASE_S)
  await lease.grant()
  let serial = 0

  const distinct: Subject = {
    system,
    async pair(task) {
      const start = performance.now()
      const key = `bench/${task}`
      const { succeeded } = await client.if(key, 'Create', '==', 0).then(lease.put(key).value('held')).commit()
      if (!succeeded) throw new Error(`${key} is held`)
      await client.delete().key(key)
      return performance.now() - start
    },
  }
  const oneName: Subject = {
    system,
    async pair() {
      const start = performance.now()
      const key = `one/${String(++serial).padStart(12, '0')}`
      await lease.put(key).value('waits')
      for (;;) {
        const keys = (await client.getAll().prefix('one/').sort('Create', 'Ascend').keys()) as string[]
        const place = keys.indexOf(key)
        if (place === 0) break
        await gone(client, keys[place - 1] as string)
      }
      const granted = performance.now()
      await client.delete().key(key)
      return granted - start
    },
  }
  return { distinct, oneName }
}

const RETRY_MIN_MS = 10
const RETRY_SPREAD_MS = 20

/**
 * What applications on npm use: `lock()` of etcd3, with a lease of its own for every acquire. It only tries, so waiting is
 * a loop around it: again after 10 to 30 ms, at random.
 */
export function npmLock(client: Etcd3): { distinct: Subject; oneName: Subject } {
  const system = 'etcd3 lock()'
  const take = async (name: string) => {
    for (;;) {
      try {
        return await client.lock(name).acquire()
      } catch (error) {
        if (!(error instanceof EtcdLockFailedError)) throw error
        await sleep(RETRY_MIN_MS + Math.random() * RETRY_SPREAD_MS)
      }
    }
  }
  const pair = async (name: string) => {
    const start = performance.now()
    const lock = await take(name)
    const granted = performance.now()
    await lock.release()
    return { whole: performance.now() - start, wait: granted - start }
  }
  return {
    distinct: { system, pair: async (task) => (await pair(`npm/${task}`)).whole },
    oneName: { system, pair: async () => (await pair('npm-one')).wait },
  }
}

/** Resolves when the key is deleted. */
async function gone(client: Etcd3, key: string): Promise<void> {
  const watcher = await client.watch().key(key).create()
  try {
    if ((await client.get(key)) === null) return
    await new Promise<void>((resolve) => watcher.once('delete', () => resolve()))
  } finally {
    await watcher.cancel()
  }
}

async function ready(client: Etcd3): Promise<void> {
  const end = performance.now() + START_LIMIT_MS
  for (;;) {
    try {
      await client.put('bench/ready').value('yes')
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await sleep(100)
    }
  }
}
