import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { etcdEngine } from '@leasehold/engines/etcd'
import { createLocksOn, defaultPlatform } from '@leasehold/client'
import { handHeld } from '@leasehold/fence'
import { fence } from '@leasehold/fence/sqlite'
import { guardSql } from '@leasehold/fence/migrations'
import Database from 'libsql'
import { createLocks, InvalidError, type Locks, StaleTokenError } from 'leasehold'
import { afterEach, expect, it, vi } from 'vitest'
import { EtcdMember } from '../services/etcd.js'
import { freePort } from '../services/ports.js'
import { temporaryFolder } from '../services/process.js'
import { describeWith } from '../services/suite.js'
import { rejection, until } from './suite/context.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const exec = promisify(execFile)

/** One etcd whose data can be wiped, saved and restored under the same name, URLs and cluster token. */
class Etcd {
  readonly #folder = temporaryFolder('etcd-tokens')
  readonly #snapshot = join(this.#folder, 'snapshot')
  readonly #data = join(this.#folder, 'data')
  #member: EtcdMember | undefined

  private constructor(
    readonly port: number,
    private readonly peer: string,
  ) {}

  static async start(): Promise<Etcd> {
    const etcd = new Etcd(await freePort(), `http://127.0.0.1:${await freePort()}`)
    await etcd.#start()
    return etcd
  }

  get url(): string {
    return `etcd://127.0.0.1:${this.port}`
  }

  async wipe(): Promise<void> {
    await this.#member?.signal('SIGKILL')
    rmSync(this.#data, { recursive: true })
    await this.#start()
  }

  async save(): Promise<void> {
    rmSync(this.#snapshot, { force: true })
    await this.#ctl('--endpoints', `127.0.0.1:${this.port}`, 'snapshot', 'save', this.#snapshot)
  }

  async restore(): Promise<void> {
    await this.#member?.signal('SIGKILL')
    rmSync(this.#data, { recursive: true })
    const place = ['--name', 'one', '--initial-cluster', `one=${this.peer}`, '--initial-advertise-peer-urls', this.peer]
    await this.#ctl('snapshot', 'restore', this.#snapshot, '--data-dir', this.#data, ...place)
    await this.#start()
  }

  async get(key: string): Promise<string> {
    return (await this.#ctl('--endpoints', `127.0.0.1:${this.port}`, 'get', '--print-value-only', key)).trim()
  }

  async put(key: string, value: string): Promise<void> {
    await this.#ctl('--endpoints', `127.0.0.1:${this.port}`, 'put', key, value)
  }

  async stop(): Promise<void> {
    await this.#member?.signal('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #start(): Promise<void> {
    const client = `http://127.0.0.1:${this.port}`
    const args = ['--name', 'one', '--data-dir', this.#data, '--listen-client-urls', client]
    args.push('--advertise-client-urls', client, '--listen-peer-urls', this.peer, '--log-level', 'error')
    args.push('--initial-advertise-peer-urls', this.peer, '--initial-cluster', `one=${this.peer}`)
    this.#member = new EtcdMember(this.port, args)
    this.#member.start()
    await until(async () => (await this.#member?.leads()) === true, 'etcd leads')
  }

  async #ctl(...args: string[]): Promise<string> {
    return (await exec('etcdctl', args, { env: { ...process.env, ETCDCTL_API: '3' } })).stdout
  }
}

describeWith('etcd', 'the tokens of an etcd that lost something', () => {
  const running: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const stop of running.splice(0).reverse()) await stop().catch(() => {})
  })

  async function start(): Promise<Etcd> {
    const etcd = await Etcd.start()
    running.push(() => etcd.stop())
    return etcd
  }

  function client(url: string, options = {}): Locks {
    const locks = createLocks(url, { ttl: '20s', ...options })
    running.push(() => locks.close())
    return locks
  }

  /** A client whose wall clock the test sets. */
  function clientAt(url: string, wallMs: () => number, report: (text: string) => void = () => {}): Locks {
    const platform = { ...defaultPlatform, wallMs, report }
    const locks = createLocksOn(etcdEngine(url, { platform }), { ttl: '20s' })
    running.push(() => locks.close())
    return locks
  }

  async function grants(locks: Locks, count: number): Promise<bigint[]> {
    const tokens: bigint[] = []
    for (let i = 0; i < count; i++) {
      const hold = await locks.acquire('doc')
      tokens.push(hold.token)
      await hold.release()
    }
    return tokens
  }

  it('are greater than all before when its data is gone', async () => {
    const etcd = await start()
    const lost = await grants(client(etcd.url), 5)
    await etcd.wipe()
    const [token] = await grants(client(etcd.url), 1)
    expect(token).toBeGreaterThan(lost.at(-1) as bigint)
  })

  it('are greater than all before when a snapshot is restored, also for a client that was connected and idle', async () => {
    const etcd = await start()
    const idle = client(etcd.url)
    const before = await grants(idle, 2)
    await etcd.save()
    const lost = await grants(client(etcd.url), 20)
    await sleep(1_000)
    await etcd.restore()
    const after = [...(await grants(idle, 2)), ...(await grants(client(etcd.url), 2))]
    const all = [...before, ...lost, ...after]
    expect(new Set(all).size).toBe(all.length)
    expect(after[0]).toBeGreaterThan(lost.at(-1) as bigint)
    expect(after).toEqual([...after].sort((a, b) => (a < b ? -1 : 1)))
  })

  it('are not given again to a request that is under way while a snapshot is restored', async () => {
    const etcd = await start()
    const one = client(etcd.url, { ttl: '60s' })
    const holder = client(etcd.url, { ttl: '60s' })
    const held = await holder.acquire('doc')
    const waiting = one.acquire('doc', { wait: '60s' })
    const watched = (async () => {
      try {
        for await (const event of holder.watch({ prefix: 'doc' })) if (event === undefined) return 'ended'
      } catch (error) {
        return (error as { code: string }).code
      }
      return 'ended'
    })()
    await until(async () => (await holder.query({ name: 'doc' })).pending.length === 1, 'one waits')
    await etcd.save()
    const lost = await grants(client(etcd.url), 0)
    for (let i = 0; i < 10; i++) lost.push((await holder.acquire(`other/${i}`)).token)
    await sleep(1_000)
    await etcd.restore()
    const fresh = client(etcd.url)
    await fresh.steal('doc', { reason: 'its holder saw what is lost' })
    const [token] = [(await waiting).token]
    expect(token).toBeGreaterThan(lost.at(-1) as bigint)
    expect(token).toBeGreaterThan(held.token)
    expect(['gap', 'epoch-changed']).toContain(await watched)
  })

  it('let a guard refuse a holder whose grant was lost by a restore', async () => {
    const etcd = await start()
    const db = new Database(':memory:')
    db.exec(guardSql('sqlite'))
    const guard = fence(db as never)
    const first = client(etcd.url)
    await grants(first, 1)
    await etcd.save()
    const stale = await first.acquire('doc')
    await guard.with(stale, () => {})
    await sleep(1_000)
    await etcd.restore()
    const later = await client(etcd.url).acquire('doc')
    await guard.with(later, () => {})
    // As a program does that does not hear that its hold is lost.
    const deaf = handHeld('doc', stale.token)
    const error = await rejection(Promise.resolve().then(() => guard.with(deaf, () => {})))
    expect(error).toBeInstanceOf(StaleTokenError)
  })

  it('grow over a raised base while holds, registers and sessions stay', async () => {
    const etcd = await start()
    let now = Date.now()
    const one = clientAt(etcd.url, () => now)
    const hold = await one.acquire('kept', { portable: true })
    const waiting = one.acquire('busy')
    const busy = await waiting
    const { version } = await one.register('r').put({ n: 1 }, { ifVersion: 0n })
    const queued = one.acquire('busy', { wait: '30s' })
    now += 60_000
    const two = clientAt(etcd.url, () => now)
    const jumped = await two.acquire('other')
    expect(jumped.token - hold.token).toBeGreaterThan(50_000n * 128n)
    await busy.release()
    expect((await queued).token).toBeGreaterThan(jumped.token)
    expect(hold.state).toBe('held')
    const next = await two.register('r').put({ n: 2 }, { ifVersion: version })
    expect(next.version).toBeGreaterThan(version)
    const moved = await two.adopt(hold.serialize())
    expect(moved.token).toBeGreaterThan(jumped.token)
    const old = await one.acquire('stolen')
    now += 60_000
    await clientAt(etcd.url, () => now).steal('stolen', { reason: 'test' })
    await until(() => old.state === 'lost', 'the stolen hold is lost')
    expect((await two.query({ name: 'kept' })).held.map(({ id }) => id)).toEqual([moved.id])
  })

  it('are not founded by a machine whose clock is implausible, unless an epoch is given', async () => {
    const etcd = await start()
    expect(await rejection(clientAt(etcd.url, () => 0).acquire('x'))).toBeInstanceOf(InvalidError)
    expect(await etcd.get('leasehold/epoch')).toBe('')
    const reports: string[] = []
    const locks = clientAt(
      `${etcd.url}?epoch=3`,
      () => 0,
      (text) => reports.push(text),
    )
    expect((await locks.acquire('x')).token >> 48n).toBe(3n)
    await grants(locks, 2)
    expect(reports.filter((text) => text.includes('implausible'))).toHaveLength(1)
  })

  it('refuses clients of a version that knows no base, and a record of a later one', async () => {
    const etcd = await start()
    await grants(client(etcd.url), 1)
    const record = JSON.parse(await etcd.get('leasehold/epoch')) as { epoch: number; cluster: string; base: number }
    expect(record).toMatchObject({ epoch: 1, cluster: expect.stringMatching(/^-?\d+\/2$/) })
    await etcd.put('leasehold/epoch', JSON.stringify({ ...record, cluster: record.cluster.replace('/2', '/3') }))
    expect(await rejection(client(etcd.url).acquire('x'))).toMatchObject({ code: 'storage' })
  })

  it('of a record without a base start where they were, and are raised by the next client', async () => {
    const etcd = await start()
    await grants(client(etcd.url), 1)
    const record = JSON.parse(await etcd.get('leasehold/epoch')) as { cluster: string }
    await etcd.put('leasehold/epoch', JSON.stringify({ epoch: 1, cluster: record.cluster.split('/')[0] }))
    const [token] = await grants(client(etcd.url), 1)
    expect(token).toBeGreaterThan((1n << 48n) + 2n ** 43n)
  })
})
