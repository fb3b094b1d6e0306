import { mkdtempSync, rmSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Etcd3 } from 'etcd3'
import type { Subject } from './measure.js'
import { freePort } from './ports.js'

const LEASE_S = 30
const START_LIMIT_MS = 20_000

/**
 * A real etcd of `count` members with all its flushes, and the cheapest fair lock on it: one transaction to take, one
 * deletion to release, under one shared lease. On one name: the queue of its own recipe, each waiter watching the one
 * before it.
 */
export async function startEtcdCluster(count: number) {
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
    spawn(
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
  const client = new Etcd3({ hosts: members.map((member) => member.client.replace('http://', '')) })
  await ready(client)
  const lease = client.lease(LEASE_S)
  await lease.grant()
  let serial = 0

  const distinct: Subject = {
    system: 'etcd',
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
    system: 'etcd',
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
  const stop = async () => {
    client.close()
    await Promise.all(
      children.map((child) => {
        const exited = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGTERM')
        return exited
      }),
    )
    rmSync(folder, { recursive: true, force: true })
  }
  return { distinct, oneName, stop }
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
