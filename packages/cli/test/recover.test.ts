import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { connect, type Locks } from 'leasehold'
import { type Cli, type Finished, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'

/** Three members, each a process of its own, and a dozen commands. */
vi.setConfig({ testTimeout: 400_000 })

const workshop = new Workshop()
const clients: Locks[] = []
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await workshop.close()
})

/** One member of a cluster, in a process of its own. */
interface Member {
  readonly name: string
  readonly data: string
  readonly url: string
  readonly peer: string
  cli: Cli
}

async function places(names: readonly string[], folder: string): Promise<Member[]> {
  const members: Member[] = []
  for (const name of names) {
    const url = `http://127.0.0.1:${await freePort()}`
    members.push({
      name,
      data: join(folder, name),
      url,
      peer: `127.0.0.1:${await freePort()}`,
      cli: undefined as never,
    })
  }
  return members
}

function start(member: Member, all: readonly Member[]): void {
  const list = all.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const { host } = new URL(member.url)
  const place = ['--name', member.name, '--peer-listen', member.peer, '--cluster', list]
  member.cli = workshop.start([
    'serve',
    '--data',
    member.data,
    '--listen',
    host,
    ...place,
    '--json',
    '--log-level',
    'warn',
  ])
}

const kill = async (member: Member): Promise<void> => {
  member.cli.kill('SIGKILL')
  await member.cli.finished
}

const urls = (members: readonly Member[]): string => members.map(({ url }) => url).join(',')

async function client(members: readonly Member[]): Promise<Locks> {
  const locks = await connect(urls(members), { clientName: 'test', connectTimeout: '10s' })
  clients.push(locks)
  return locks
}

const ok = async (...args: string[]): Promise<Finished> => {
  const end = await workshop.run(args)
  expect([args, end.code, end.stderr]).toEqual([args, 0, ''])
  return end
}

/** Runs a command until it succeeds: a learner catches up when it does. */
async function eventually(...args: string[]): Promise<void> {
  let last: Finished | undefined
  try {
    await until(async () => (last = await workshop.run(args)).code === 0, args.join(' '))
  } catch (error) {
    throw new Error(`${args.join(' ')}: ${last?.stderr}`, { cause: error })
  }
}

interface Verified {
  readonly epoch: number
  readonly cluster: string
  readonly index: number
  readonly term: number
  readonly hash: string
}

const verify = async (member: Member): Promise<Verified> =>
  JSON.parse((await ok('verify', '--data', member.data, '--json')).stdout) as Verified

/** Adds two empty members to a service of one, and makes them voters. */
async function grow(one: Member, others: readonly Member[]): Promise<void> {
  const all = [one, ...others]
  start(one, all)
  await one.cli.printed('"url"')
  for (const member of others) start(member, all)
  for (const member of others) {
    await eventually('cluster', 'add', `${member.name}=${member.peer}`, '--url', one.url)
    await member.cli.printed('"url"')
    await eventually('cluster', 'promote', member.name, '--url', one.url)
  }
}

describe('promise 2, rule T: a restored service grows into a cluster', () => {
  test('restore, serve as a member, add and promote two empty members, lose the first: tokens only increase', async () => {
    const folder = workshop.folder()
    const single = await workshop.serve(join(folder, 'single'))
    const old = await connect(single.url, { clientName: 'test' })
    clients.push(old)
    const kept = await old.acquire('kept', { ttl: '240s', persistent: true })
    const last = (await old.acquire('job', { ttl: '240s' })).token
    const file = join(folder, 'locks.backup')
    await ok('backup', file, '--url', single.url)
    single.cli.kill('SIGKILL')
    await single.cli.finished

    const [n1, n2, n3] = (await places(['n1', 'n2', 'n3'], folder)) as [Member, Member, Member]
    await ok('restore', file, '--data', n1.data, '--epoch', '2', '--name', 'n1')
    await grow(n1, [n2, n3])
    const locks = await client([n1, n2, n3])
    const hold = await locks.acquire('job', { ttl: '240s' })
    expect(hold.token).toBeGreaterThan(last)
    const status = JSON.parse((await ok('cluster', 'status', '--url', n2.url, '--json')).stdout) as {
      epoch: number
      members: { name: string; role: string; peer: string }[]
    }
    expect(status.epoch).toBe(2)
    const seen = status.members.map(({ name, role, peer }) => [name, role, peer])
    expect(seen.sort()).toEqual([n1, n2, n3].map(({ name, peer }) => [name, 'voter', peer]))

    // A backup may be taken from any member.
    const again = join(folder, 'again.backup')
    const report = JSON.parse((await ok('backup', again, '--url', n3.url, '--json')).stdout) as {
      member: string
      read: string
    }
    expect(report).toMatchObject({ member: 'n3', read: 'linearizable' })

    await kill(n1)
    const next = await locks.acquire('other', { ttl: '240s', wait: '100s' })
    expect(next.token).toBeGreaterThan(hold.token)
    expect(hold.state).toBe('held')
    const { held } = await locks.query({ name: 'kept' })
    expect(held[0]?.id).toBeGreaterThan(kept.id)
    // It comes back on its own folder, as the member that it was.
    start(n1, [n1, n2, n3])
    await n1.cli.printed('"url"')

    await Promise.all([n1, n2, n3].map(kill))
    const folders = [await verify(n1), await verify(n2), await verify(n3)]
    expect(new Set(folders.map(({ cluster, epoch }) => `${cluster} ${epoch}`)).size).toBe(1)
    const wrong = { ...n2, name: 'n9', data: n2.data }
    start(wrong, [n1, wrong, n3])
    const refused = await wrong.cli.finished
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining('belongs to the member n2')])
  })
})

describe('promise 8: a cluster that has lost its majority for good', () => {
  test('recover makes a service of one of a survivor, and the other survivors are rejected', async () => {
    const folder = workshop.folder()
    const all = (await places(['n1', 'n2', 'n3'], folder)) as [Member, Member, Member]
    const [n1, n2, n3] = all
    for (const member of all) start(member, all)
    for (const member of all) await member.cli.printed('"url"')
    const locks = await client(all)
    const kept = await locks.acquire('kept', { ttl: '240s', persistent: true })
    const hold = await locks.acquire('job', { ttl: '240s' })
    const last = hold.token
    await kill(n1)
    await kill(n2)
    rmSync(n1.data, { recursive: true })

    // Without a quorum, only a stale backup is possible, which is marked as such.
    const file = join(folder, 'stale.backup')
    const refused = await workshop.run(['backup', file, '--url', n3.url])
    expect([refused.code, refused.stderr]).toEqual([69, expect.stringContaining('--stale')])
    expect((await ok('backup', file, '--url', n3.url, '--stale')).stdout).toContain('newer entries may be missing')
    const busy = await workshop.run(['recover', '--force-single', '--data', n3.data, '--epoch', '2'])
    expect([busy.code, busy.stderr]).toEqual([74, expect.stringContaining('is in use by n3')])
    await kill(n3)
    const before = await verify(n3)

    const missing = await workshop.run(['recover', '--data', n3.data, '--epoch', '2'])
    expect([missing.code, missing.stderr]).toEqual([64, expect.stringContaining('--force-single')])
    const low = await workshop.run(['recover', '--force-single', '--data', n3.data, '--epoch', '1'])
    expect([low.code, low.stderr]).toEqual([64, expect.stringContaining('--epoch 2')])
    const done = await ok('recover', '--force-single', '--data', n3.data, '--epoch', '2')
    expect(done.stdout).toContain(`all entries up to ${before.index} of term ${before.term}`)
    expect(done.stdout).toContain('later entries of other members are lost')
    expect(done.stdout).toContain('kept: ')
    expect(existsSync(join(n3.data, 'before-epoch-2', 'identity'))).toBe(true)
    const after = await verify(n3)
    expect(after.cluster).not.toBe(before.cluster)

    const [n4, n5] = (await places(['n4', 'n5'], folder)) as [Member, Member]
    await grow(n3, [n4, n5])
    expect(await hold.lost).toMatchObject({ reason: 'epoch-changed' })
    const next = await locks.acquire('job', { ttl: '240s', wait: '100s' })
    expect(next.token).toBeGreaterThan(last)
    expect(next.token >> 48n).toBe(2n)
    expect((await locks.query({ name: 'kept' })).held[0]?.id).not.toBe(kept.id)

    // An old survivor is started: it gets no votes, and does not disturb the new cluster.
    start(n2, all)
    await until(async () => (await statusOf(n2)) !== undefined, 'the old survivor runs')
    // It starts an election every second or two. On a busy machine, the others may have one of their own.
    await until(async () => {
      const term = (await statusOf(n3))?.term
      await sleep(4000)
      return (await statusOf(n3))?.term === term
    }, 'the term of the others is stable')
    expect(await statusOf(n2)).toMatchObject({ epoch: 1, leader: '' })
    expect(await statusOf(n3)).toMatchObject({ epoch: 2 })
    expect(next.state).toBe('held')
    await next.release()
  })
})

async function statusOf(member: Member): Promise<{ epoch: number; leader: string; term: number } | undefined> {
  try {
    return (await (await fetch(`${member.url}/v1/cluster`)).json()) as { epoch: number; leader: string; term: number }
  } catch {
    return undefined
  }
}
