import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fence } from '@leasehold/fence/sqlite'
import { guardSql } from '@leasehold/fence/migrations'
import Database from 'libsql'
import { afterAll, describe, expect, test } from 'vitest'
import { connect, EpochChangedError, HoldLostError, StaleTokenError, type Locks } from 'leasehold'
import { type Finished, type Service, until, Workshop } from './support/cli.js'
import { hasTerminal, TerminalCli } from './support/terminal.js'

const workshop = new Workshop()
const clients: Locks[] = []
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await workshop.close()
})

async function client(service: Service): Promise<Locks> {
  const locks = await connect(service.url, { clientName: 'test' })
  clients.push(locks)
  return locks
}

const ok = async (...args: string[]): Promise<Finished> => {
  const end = await workshop.run(args)
  expect([args, end.code, end.stderr]).toEqual([args, 0, ''])
  return end
}
const json = async (...args: string[]): Promise<Record<string, never>> =>
  JSON.parse((await ok(...args, '--json')).stdout) as Record<string, never>

const stop = async (service: Service): Promise<void> => {
  service.cli.kill('SIGKILL')
  await service.cli.finished
}

const listenOn = (service: Service): string[] => ['--listen', new URL(service.url).host]

/** Takes locks one after another, as fast as it goes, until it is told to stop; keeps every token. */
function load(locks: Locks, name: string): { readonly tokens: bigint[]; stop(): Promise<void> } {
  const tokens: bigint[] = []
  let going = true
  const work = (async () => {
    while (going) {
      const hold = await locks.acquire(name, { ttl: '30s' })
      tokens.push(hold.token)
      await hold.release()
    }
  })()
  return {
    tokens,
    stop: async () => {
      going = false
      await work
    },
  }
}

describe('promise 2, rule T: ordered tokens over a restore', () => {
  test('gives greater tokens than ever before after a backup under load and a restore', async () => {
    const first = await workshop.serve(workshop.folder())
    const file = join(workshop.folder(), 'locks.backup')
    const locks = await client(first)
    const loads = [1, 2, 3].map((i) => load(locks, `load/${i}`))
    await until(() => loads.every(({ tokens }) => tokens.length > 20), 'the load runs')
    const before = loads.map(({ tokens }) => tokens.length)
    const report = await json('backup', file, '--url', first.url)
    expect(report).toMatchObject({ file, epoch: 1, read: 'linearizable', bytes: statSync(file).size })
    await until(() => loads.every(({ tokens }, i) => tokens.length > (before[i] as number) + 20), 'the load goes on')
    await Promise.all(loads.map((one) => one.stop()))
    const given = loads.flatMap(({ tokens }) => tokens)
    const highest = given.reduce((a, b) => (a > b ? a : b))
    await stop(first)

    const data = join(workshop.folder(), 'restored')
    expect(await json('restore', file, '--data', data, '--epoch', '2')).toMatchObject({
      epoch: 2,
      known: [{ epoch: 1 }],
    })
    const second = await workshop.serve(data, listenOn(first))
    expect(second.epoch).toBe(2)
    // The very client that had the old tokens goes on.
    for (const name of ['load/1', 'load/2', 'load/3', 'never/used']) {
      const hold = await locks.acquire(name, { ttl: '30s' })
      expect(hold.token).toBeGreaterThan(highest)
      await hold.release()
    }
  })

  test('refuses a restore whose epoch is not above all known ones, and suggests the next', async () => {
    const service = await workshop.serve(workshop.folder(), ['--epoch', '7'])
    const file = join(workshop.folder(), 'locks.backup')
    await ok('backup', file, '--url', service.url)
    const data = join(workshop.folder(), 'restored')
    for (const epoch of [[], ['--epoch', '1'], ['--epoch', '7']]) {
      const refused = await workshop.run(['restore', file, '--data', data, ...epoch])
      expect([epoch, refused.code]).toEqual([epoch, 64])
      expect(refused.stderr).toContain('7 (the backup)')
      expect(refused.stderr).toContain('--epoch 8')
    }
    expect(existsSync(data)).toBe(false)
    const done = await ok('restore', file, '--data', data, '--epoch', '8')
    expect(done.stdout).toContain('no program can know')
    const again = await workshop.run(['restore', file, '--data', `${data}-2`, '--epoch', '8'])
    expect(again.code).toBe(64)
    expect(again.stderr).toContain(`8 (restored into ${data} at `)
    expect(again.stderr).toContain('--epoch 9')
  })

  test('refuses serve --epoch N on a folder with data', async () => {
    const service = await workshop.serve(workshop.folder())
    const file = join(workshop.folder(), 'locks.backup')
    await ok('backup', file, '--url', service.url)
    const data = join(workshop.folder(), 'restored')
    await ok('restore', file, '--data', data, '--epoch', '2')
    const refused = await workshop.run(['serve', '--data', data, '--listen', '127.0.0.1:0', '--epoch', '3'])
    expect(refused.code).toBe(64)
    expect(refused.stderr).toContain('this data folder is in epoch 2, and --epoch 3 is only for an empty one')
    expect(refused.stderr).toContain('an epoch is raised by restoring a backup')
    expect((await workshop.serve(data)).epoch).toBe(2)
  })
})

describe('promise 11 and reason epoch-changed: clients of a service that was restored', () => {
  test('holds are lost with epoch-changed, watches end with EpochChangedError, and the client can acquire again', async () => {
    const first = await workshop.serve(workshop.folder())
    const file = join(workshop.folder(), 'locks.backup')
    const locks = await client(first)
    const hold = await locks.acquire('job/a', { ttl: '240s' })
    const kept = await locks.acquire('job/kept', { ttl: '240s', persistent: true })
    const handle = JSON.parse((await ok('acquire', 'job/b', '--ttl', '240s', '--url', first.url, '--json')).stdout) as {
      hold: string
    }
    const waiter = locks.acquire('job/a', { wait: '240s', ttl: '240s' })
    const watching = (async () => {
      for await (const event of locks.watch({ prefix: 'job' })) void event
    })().catch((error: unknown) => error)
    await until(async () => (await locks.query({ prefix: 'job' })).pending.length === 1, 'it waits')
    await ok('backup', file, '--url', first.url)
    await stop(first)

    const data = join(workshop.folder(), 'restored')
    const { holds } = await json('restore', file, '--data', data, '--epoch', '2')
    expect(holds).toEqual([{ from: String(kept.id), to: expect.any(String), names: ['job/kept'], client: 'test' }])
    const second = await workshop.serve(data, listenOn(first))

    const lost = await hold.lost
    expect(lost).toBeInstanceOf(HoldLostError)
    expect(lost).toMatchObject({ reason: 'epoch-changed' })
    expect(hold.signal.reason).toMatchObject({ reason: 'epoch-changed' })
    expect(await kept.lost).toMatchObject({ reason: 'epoch-changed' })
    expect(await watching).toBeInstanceOf(EpochChangedError)
    // Whoever waited goes on waiting, in a session of the new epoch.
    const next = await waiter
    expect(next.token >> 48n).toBe(2n)
    expect(next.token).toBeGreaterThan(hold.token)
    const { held } = await locks.query({ name: 'job/kept' })
    expect(held.map((row) => row.id)).toEqual([BigInt((holds as unknown as { to: string }[])[0]?.to as string)])
    for (const path of ['/v1/renew', '/v1/release']) {
      const answer = await fetch(second.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ hold: handle.hold }),
      })
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 410, { code: 'epoch-changed' }])
    }
    await next.release()
  })

  test('a client that has seen the new epoch rejects a member of the old one', async () => {
    const oldData = workshop.folder()
    const first = await workshop.serve(oldData)
    const file = join(workshop.folder(), 'locks.backup')
    await ok('backup', file, '--url', first.url)
    await stop(first)
    const data = join(workshop.folder(), 'restored')
    await ok('restore', file, '--data', data, '--epoch', '2')
    const second = await workshop.serve(data, listenOn(first))
    const locks = await client(second)
    await (await locks.acquire('x')).release()
    await stop(second)
    const back = await workshop.serve(oldData, listenOn(first))
    await expect(locks.acquire('x', { wait: '2s' })).rejects.toThrow()
    expect((await locksOf(back)).held).toEqual([])
    await stop(back)
    const again = await workshop.serve(data, listenOn(first))
    const hold = await locks.acquire('x', { wait: '100s' })
    expect(hold.token >> 48n).toBe(2n)
    expect(again.epoch).toBe(2)
  })
})

async function locksOf(service: Service): Promise<{ held: unknown[] }> {
  return (await (await fetch(`${service.url}/v1/locks`)).json()) as { held: unknown[] }
}

describe('promise 3: a service that came back without a raised epoch', () => {
  test('a guard rejects its tokens, and reports that the tokens of the lock service have decreased', async () => {
    const raised = await workshop.serve(workshop.folder(), ['--epoch', '9'])
    const database = new Database(join(workshop.folder(), 'resource.db'))
    database.exec(guardSql('sqlite'))
    const guard = fence(database)
    const old = await (await client(raised)).acquire('invoice')
    await guard.with(old, () => {})
    await old.release()
    await stop(raised)
    // What an operator does who forgets --epoch: a service that begins anew, in epoch 1.
    const young = await workshop.serve(workshop.folder())
    const hold = await (await client(young)).acquire('invoice')
    const error = await guard.with(hold, () => {}).catch((problem: unknown) => problem)
    expect(error).toBeInstanceOf(StaleTokenError)
    expect((error as StaleTokenError).hint).toMatch(
      /^most likely the lock service was founded again or restored with lower tokens/,
    )
    database.close()
  })
})

describe('leasehold backup', () => {
  test('does not replace a file without --force, and leaves no partial file', async () => {
    const service = await workshop.serve(workshop.folder())
    const folder = workshop.folder()
    const file = join(folder, 'locks.backup')
    writeFileSync(file, 'precious')
    const refused = await workshop.run(['backup', file, '--url', service.url])
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining('--force')])
    expect(readFileSync(file, 'utf8')).toBe('precious')
    const done = await ok('backup', file, '--url', service.url, '--force')
    expect(done.stdout).toMatch(/locks\.backup: epoch 1, entry \d+, \d+ bytes \(0 sessions, 0 holds, 0 registers\)\n$/)
    expect(statSync(file).mode & 0o077).toBe(0)
    const nowhere = await workshop.run(['backup', join(folder, 'no/such/file'), '--url', service.url])
    expect(nowhere.code).toBe(74)
    const away = await workshop.run(['backup', join(folder, 'other'), '--url', 'http://127.0.0.1:1'])
    expect(away.code).toBe(69)
    expect(readdirSync(folder)).toEqual(['locks.backup'])
  })

  test('backs up and restores a large state, without progress output off a terminal', async () => {
    const service = await workshop.serve(workshop.folder())
    const value = Buffer.alloc(65_000, 1)
    for (let i = 0; i < 700; i += 20) {
      const puts = Array.from({ length: 20 }, (_, k) =>
        fetch(`${service.url}/v1/registers?key=big/${i + k}`, {
          method: 'PUT',
          headers: { 'content-type': 'application/octet-stream' },
          body: value,
        }),
      )
      for (const put of await Promise.all(puts)) expect(put.status).toBe(200)
    }
    const file = join(workshop.folder(), 'large.backup')
    const end = await workshop.run(['backup', file, '--url', service.url])
    expect([end.code, end.stderr]).toEqual([0, ''])
    const data = join(workshop.folder(), 'restored')
    await ok('restore', file, '--data', data, '--epoch', '2')
    expect((await json('verify', '--data', data)).counts).toMatchObject({ registers: 700 })
  })

  test.skipIf(!hasTerminal)(
    'on a terminal long work says how far it is, and takes that away (needs script of util-linux)',
    async () => {
      const service = await workshop.serve(workshop.folder())
      const folder = workshop.folder()
      const [file, data] = [join(folder, 'a.backup'), join(folder, 'restored')]
      const works: [string[], RegExp][] = [
        [['backup', file, '--url', service.url], /\[=* *\] +\d+ % .*bytes/],
        [['restore', file, '--data', data, '--epoch', '2'], /reading the backup/],
        [['verify', '--data', data], /\[=* *\] +\d+ % reading the snapshots/],
        [['recover', '--force-single', '--data', data, '--epoch', '3'], /reading the snapshots/],
      ]
      for (const [args, told] of works) {
        const cli = new TerminalCli(args)
        expect([args, await cli.finished]).toEqual([args, 0])
        // What is left stands behind the last time that the line was cleared.
        const parts = cli.output.split('\r\x1b[K')
        const answer = parts.pop()
        expect([args, parts.join('\n')]).toEqual([args, expect.stringMatching(told)])
        expect([args, answer]).toEqual([args, expect.not.stringMatching(told)])
      }
      const quiet = new TerminalCli(['verify', '--data', data, '--json'])
      expect(await quiet.finished).toBe(0)
      expect(quiet.output).not.toContain('reading')
    },
  )
})

describe('leasehold verify', () => {
  test('prints the content of a folder, and exits with 74 on damage or a running owner', async () => {
    const data = workshop.folder()
    const service = await workshop.serve(data)
    const locks = await client(service)
    await locks.acquire('a', { ttl: '240s' })
    const live = await workshop.run(['verify', '--data', data])
    expect([live.code, live.stderr]).toEqual([74, expect.stringContaining('is in use by n1')])
    await stop(service)
    await sleep(0)
    const whole = await ok('verify', '--data', data)
    expect(whole.stdout).toMatch(/is whole\n {2}member {5}n1, node \d+, of cluster [0-9a-f]{32}, epoch 1\n/)
    expect(whole.stdout).toMatch(/hash [0-9a-f]{16}\n {13}1 session, 1 hold, 0 waiters/)
    const log = join(data, readdirSync(data).find((name) => name.startsWith('log-')) as string)
    const bytes = readFileSync(log)
    bytes[45] = (bytes[45] as number) ^ 1
    writeFileSync(log, bytes)
    const damaged = await workshop.run(['verify', '--data', data])
    expect([damaged.code, damaged.stderr]).toEqual([74, expect.stringContaining(`${log} is damaged at byte 0`)])
    expect((await workshop.run(['verify'])).code).toBe(64)
  })
})
