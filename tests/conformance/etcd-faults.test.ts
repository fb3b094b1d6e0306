import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { defaultPlatform, type Engine } from '@leasehold/client'
import { raiseEpoch } from '@leasehold/engines/etcd'
import { etcdEngine } from '@leasehold/engines/etcd'
import { AccessError, connect, createLocks, InvalidError, type Locks, SessionEndedError, WatchError } from 'leasehold'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type EtcdCluster, startEtcd, startEtcdCluster } from '../services/etcd.js'
import { type Service, temporaryFolder } from '../services/process.js'
import { Proxy } from '../services/proxy.js'
import { describeWith } from '../services/suite.js'
import { pendingOf, rejection, until } from './suite/context.js'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

const exec = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const opened: Locks[] = []

function client(url: string, options = {}): Locks {
  const locks = createLocks(url, options)
  opened.push(locks)
  return locks
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()))
})

async function etcdctl(endpoint: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, ETCDCTL_API: '3' }
  return (await exec('etcdctl', ['--endpoints', endpoint, ...args], { env })).stdout
}

describeWith('etcd', 'faults of an etcd of three members', () => {
  let cluster: EtcdCluster
  let url = ''
  beforeAll(async () => {
    cluster = await startEtcdCluster(3)
    url = `etcd://${cluster.members.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
  })
  afterAll(() => cluster.stop())

  it.each(['SIGKILL', 'SIGSTOP'] as const)('%s of the leader loses no hold and no order', async (signal) => {
    const [one, two, three] = [client(url, { ttl: '20s' }), client(url), client(url)]
    const kept = await one.acquire(`kept/${signal}`)
    const tokens: bigint[] = []
    let inside = 0
    const work = Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        [one, two, three][i % 3]?.request(`work/${signal}`, { wait: '90s' }, async (hold) => {
          expect(++inside).toBe(1)
          tokens.push(hold.token)
          await sleep(20)
          inside--
        }),
      ),
    )
    await sleep(100)
    const leader = await cluster.leader()
    await leader.signal(signal)
    await sleep(3_000)
    if (signal === 'SIGSTOP') await leader.signal('SIGCONT')
    else leader.start()
    await work
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)))
    expect(new Set(tokens).size).toBe(24)
    expect(kept.state).toBe('held')
    expect(await kept.release()).toEqual({ released: true })
  })

  it.each([
    ['before', 0],
    ['while', 1],
    ['while', 2],
    ['while', 3],
  ])('a waiter whose own lease ends %s the release of the lock does not win (%i)', async (when, round) => {
    const engine = etcdEngine(url)
    const name = `dead-waiter-${round}`
    const holder = await engine.openSession({ ttlMs: 10_000, client: 'holder', timeoutMs: 5_000 })
    const waiter = await engine.openSession({ ttlMs: 10_000, client: 'waiter', timeoutMs: 5_000 })
    const terms = { lockDelayMs: 0, persistent: false, portable: false, data: new Uint8Array(0) }
    const locks = [{ name, mode: 'exclusive' as const }]
    const hold = await holder.acquire({ ...terms, locks, waitMs: 1_000 })
    const waits = waiter.acquire({ ...terms, locks, waitMs: 30_000 }).then(
      (grant) => grant,
      (error: unknown) => error,
    )
    const seen = client(url)
    await until(async () => (await pendingOf(seen, name)) === 1, 'it waits')
    const { at } = await seen.query({ name })
    const ending = engine.endSession(waiter.id, { reason: 'test', timeoutMs: 5_000 })
    if (when === 'before') await ending
    await Promise.all([ending, holder.release(hold.id, { timeoutMs: 5_000 })])
    const outcome = await waits
    // Etcd's own history says in which order it was: a grant is told only if it came before the end.
    const grants: bigint[] = []
    for await (const event of seen.watch({ from: at })) {
      if (event.kind === 'held' && event.session === waiter.id) grants.push(event.id)
      if (event.kind === 'sessionEnded' && event.session === waiter.id) break
    }
    if (outcome instanceof Error) expect(outcome).toBeInstanceOf(SessionEndedError)
    else expect(grants).toEqual([(outcome as { id: bigint }).id])
    if (when === 'before') expect(outcome).toBeInstanceOf(SessionEndedError)
    await until(async () => (await seen.query({ name })).held.length === 0, 'nothing is left')
    await engine.close()
  })

  it('compaction during a watch is a gap only for events that are gone', async () => {
    const locks = client(url)
    const from = (await locks.query({ name: 'watched' })).at
    const seen: string[] = []
    const stop = new AbortController()
    const live = (async () => {
      for await (const event of locks.watch({ prefix: 'watched', from, signal: stop.signal })) seen.push(event.kind)
    })()
    await locks.request('watched', () => {})
    await until(() => seen.length === 2, 'both events are seen')
    await cluster.compact()
    await locks.request('watched', () => {})
    await until(() => seen.length === 4, 'the watch continues')
    stop.abort()
    await live
    await expect(locks.watch({ prefix: 'watched', from }).next()).rejects.toBeInstanceOf(WatchError)
  })

  it('a grant that is missed while its watch is compacted is found', async () => {
    const [one, two] = [client(url), client(url)]
    const hold = await one.acquire('missed')
    const waiting = two.acquire('missed', { wait: '60s' })
    await until(async () => (await pendingOf(one, 'missed')) === 1, 'it waits')
    await Promise.all([hold.release(), cluster.compact()])
    expect((await waiting).state).toBe('held')
  })
})

describeWith('etcd', 'answers of etcd that are lost', () => {
  it('a waiter that is granted before it knows that it waits leaves no place in the queue behind', async () => {
    await using service = await startEtcd()
    await using door = await Proxy.start(service.port)
    const name = 'unheard'
    const holder = client(`etcd://127.0.0.1:${service.port}`)
    // Its clock stands still: it remembers the contention, and its next acquire queues at once.
    const platform = { ...defaultPlatform, monotonicMs: () => 0 }
    const engine = etcdEngine(`etcd://127.0.0.1:${door.port}`, { platform })
    const session = await engine.openSession({ ttlMs: 60_000, client: 'waiter', timeoutMs: 30_000 })
    const terms = { lockDelayMs: 0, persistent: false, portable: false, data: new Uint8Array(0), waitMs: 60_000 }
    const wanted = { ...terms, locks: [{ name, mode: 'exclusive' as const }] }
    // A release of several locks grants them to their waiters, whether the client has seen them or not.
    const hold = await holder.acquire([name, 'another'])
    const first = new AbortController()
    const met = rejection(session.acquire({ ...wanted, signal: first.signal }))
    await until(async () => (await pendingOf(holder, name)) === 1, 'it waits')
    first.abort()
    await met
    await until(async () => (await pendingOf(holder, name)) === 0, 'it has left')
    door.mute()
    const waiting = session.acquire(wanted)
    await until(async () => (await pendingOf(holder, name)) === 1, 'it waits again')
    await hold.release()
    const granted = (await holder.query({ name })).held.map(({ id }) => id)
    expect(granted).toHaveLength(1)
    door.open()
    const { id } = await waiting
    expect([id]).toEqual(granted)
    expect(await session.release(id, { timeoutMs: 30_000 })).toEqual({ released: true })
    expect(await holder.query({ name })).toMatchObject({ held: [], pending: [] })
    await engine.close()
  })
})

describeWith('etcd', 'a session of etcd whose closer has died before it ended the lease', () => {
  let service: Service
  let url = ''
  beforeAll(async () => {
    service = await startEtcd()
    url = `etcd://127.0.0.1:${service.port}`
  })
  afterAll(() => service.stop())

  // What closing a session writes first; ending its lease is the second step.
  async function closeHalf(session: bigint): Promise<void> {
    const listed = await etcdctl(service.url, 'get', '--prefix', 'leasehold/s/')
    const keys = listed.split('\n').filter((line) => line.startsWith('leasehold/s/'))
    for (const key of keys) {
      const { kvs } = JSON.parse(await etcdctl(service.url, 'get', key, '-w', 'json')) as {
        kvs: { create_revision: number; value: string }[]
      }
      const [kv] = kvs
      if (kv === undefined) continue
      const record = JSON.parse(Buffer.from(kv.value, 'base64').toString()) as { base: number }
      if (BigInt(kv.create_revision) * 64n + BigInt(record.base) !== (session & (2n ** 48n - 1n))) continue
      const closed = JSON.stringify({ ...record, state: 'closed', by: 'operator', reason: 'test' })
      await etcdctl(service.url, 'put', '--ignore-lease', key, closed)
      await etcdctl(service.url, 'del', key.replace('/s/', '/o/'))
      return
    }
    throw new Error('there is no such session')
  }

  it.each([
    ['by the client that releases the lock', ['both/1', 'both/2']],
    ['by the next one in the queue', ['alone']],
  ])('does not hold up those behind it: it is ended %s', async (_, names) => {
    // Looks that a waiter makes every 20 s come twenty times as often, and the leases last for an hour.
    const platform = {
      ...defaultPlatform,
      after: (delayMs: number, callback: () => void, keepAlive?: boolean) =>
        defaultPlatform.after(delayMs >= 15_000 ? delayMs / 20 : delayMs, callback, keepAlive),
    }
    const open = async (engine: Engine) => {
      return engine.openSession({ ttlMs: 3_600_000, client: 'test', timeoutMs: 30_000 })
    }
    const engines = [etcdEngine(url), etcdEngine(url), etcdEngine(url, { platform })] as const
    const [holder, waiter, next] = [await open(engines[0]), await open(engines[1]), await open(engines[2])]
    const terms = { lockDelayMs: 0, persistent: false, portable: false, data: new Uint8Array(0) }
    const wanted = { ...terms, waitMs: Number.POSITIVE_INFINITY }
    const locks = names.map((name) => ({ name, mode: 'exclusive' as const }))
    const seen = client(url)
    const pending = (count: number) => {
      return until(async () => (await pendingOf(seen, names[0] as string)) === count, `${count} wait`)
    }
    const hold = await holder.acquire({ ...wanted, locks })
    const ended = rejection(waiter.acquire({ ...wanted, locks }))
    await pending(1)
    const waiting = next.acquire({ ...wanted, locks })
    await pending(2)
    await closeHalf(waiter.id)
    expect(await ended).toBeInstanceOf(SessionEndedError)
    expect(await holder.release(hold.id, { timeoutMs: 30_000 })).toEqual({ released: true })
    expect((await waiting).locks.map(({ name }) => name)).toEqual(names)
    await pending(0)
    for (const engine of engines) await engine.close()
  })
})

describeWith('etcd', 'an epoch of etcd', () => {
  it('is raised: holds are lost, persistent ones stay under new ids, and all tokens are greater', async () => {
    await using service = await startEtcd()
    const url = `etcd://127.0.0.1:${service.port}`
    const locks = client(url, { ttl: '3s' })
    const hold = await locks.acquire('a')
    const kept = await locks.acquire('b', { persistent: true })
    await locks.register('r').put(1)
    await expect(raiseEpoch(url, 1)).rejects.toBeInstanceOf(InvalidError)
    const raised = await raiseEpoch(url, 7)
    expect(raised).toMatchObject({ epoch: 7, before: 1, kept: [{ names: ['b'], before: kept.id }] })
    expect(await hold.lost).toMatchObject({ code: 'lost' })
    const fresh = client(url)
    const next = await fresh.acquire('a', { wait: '10s' })
    expect(next.token >> 48n).toBe(7n)
    const rows = (await fresh.query({ name: 'b' })).held
    expect(rows.map(({ id }) => id)).toEqual([raised.kept[0]?.id])
    expect(await fresh.tryAcquire('b')).toBeNull()
    const again = await locks.acquire('c', { wait: '20s' })
    expect(again.token >> 48n).toBe(7n)
    const { version } = await fresh.register('r').put(2)
    expect(version >> 48n).toBe(7n)
  })

  it('protects from an etcd that was restored from a backup', async () => {
    const folder = temporaryFolder('etcd-restore')
    let before = 0n
    {
      await using service = await startEtcd()
      const locks = client(`etcd://127.0.0.1:${service.port}`)
      await locks.acquire('kept', { persistent: true })
      await etcdctl(service.url, 'snapshot', 'save', join(folder, 'snapshot'))
      for (let i = 0; i < 5; i++) await (await locks.acquire('a')).release()
      before = (await locks.acquire('a')).token
      await Promise.all(opened.splice(0).map((one) => one.close()))
    }
    await etcdctl('none', 'snapshot', 'restore', join(folder, 'snapshot'), '--data-dir', join(folder, 'data'))
    await using restored = await startEtcd({ args: ['--data-dir', join(folder, 'data')] })
    const url = `etcd://127.0.0.1:${restored.port}`
    await expect(connect(url)).rejects.toMatchObject({ code: 'epoch-changed', hint: expect.stringContaining('epoch') })
    await raiseEpoch(url, 2)
    const locks = client(url)
    expect((await locks.acquire('a')).token).toBeGreaterThan(before)
    expect((await locks.query({ name: 'kept' })).held).toHaveLength(1)
  })
})

describeWith('etcd', 'the way to etcd', () => {
  it('asks for user and password', async () => {
    await using service = await startEtcd()
    await etcdctl(service.url, 'user', 'add', 'root:secret')
    await etcdctl(service.url, 'user', 'grant-role', 'root', 'root')
    await etcdctl(service.url, 'auth', 'enable')
    const at = `127.0.0.1:${service.port}`
    const locks = client(`etcd://root:secret@${at}`)
    expect((await locks.acquire('a')).state).toBe('held')
    await expect(connect(`etcd://root:wrong@${at}`)).rejects.toBeInstanceOf(AccessError)
    const refused = await rejection(connect(`etcd://${at}`))
    expect(refused).toBeInstanceOf(AccessError)
    expect(String((locks.status as { url?: string }).url)).not.toContain('secret')
  })

  it('goes over TLS', async () => {
    const folder = temporaryFolder('etcd-tls')
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    await exec('openssl', ['req', '-x509', ...curve, '-nodes', '-days', '2', ...subject, '-keyout', key, '-out', cert])
    await using service = await startEtcd({ tls: { key, cert } })
    const ca = (await import('node:fs')).readFileSync(cert)
    const locks = createLocks(`etcd+tls://localhost:${service.port}`, { tls: { ca } })
    opened.push(locks)
    expect((await locks.acquire('a')).state).toBe('held')
    await expect(connect(`etcd+tls://localhost:${service.port}`, { connectTimeout: '1s' })).rejects.toMatchObject({
      code: 'unreachable',
    })
  })

  it('keeps no process alive that holds a lock', async () => {
    await using service = await startEtcd()
    const program = `import { createLocks } from 'leasehold'
      const locks = createLocks('etcd://127.0.0.1:${service.port}')
      await locks.acquire('a')
      console.log('held')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: join(root, 'packages/leasehold'),
    })
    let output = ''
    child.stdout.on('data', (data: Buffer) => {
      output += data.toString()
    })
    const [code] = (await once(child, 'close')) as [number]
    expect({ code, output }).toEqual({ code: 0, output: 'held\n' })
  })

  describe('a URL', () => {
    it.each(['etcd://', 'etcd://host:port', 'etcd://host?x=1', 'etcd://host?epoch=0'])('%s is refused', async (url) => {
      await expect(connect(url)).rejects.toBeInstanceOf(InvalidError)
    })
  })
})
