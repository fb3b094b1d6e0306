import {
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { crc32 } from '@leasehold/core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cli, complained, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

interface Member {
  readonly name: string
  readonly data: string
  readonly url: string
  readonly peer: string
  cli: Cli
}

const LIMIT_MS = 120_000
const workshop = new Workshop()
const members: Member[] = []
let list: string
let all: string

beforeAll(async () => {
  const folder = workshop.folder()
  for (const name of ['n1', 'n2', 'n3']) {
    const url = `http://127.0.0.1:${await freePort()}`
    const peer = `127.0.0.1:${await freePort()}`
    members.push({ name, data: join(folder, name), url, peer, cli: undefined as never })
  }
  list = members.map(({ name, peer }) => `${name}=${peer}`).join(',')
  all = members.map(({ url }) => url).join(',')
  for (const member of members) start(member, '--repair')
  await Promise.all(members.map(({ cli }) => cli.printed('"url"')))
})
afterAll(() => workshop.close())

function start(member: Member, ...more: string[]): void {
  const place = ['--name', member.name, '--peer-listen', member.peer, '--cluster', list, '--accept-repair']
  const args = ['serve', '--data', member.data, '--listen', new URL(member.url).host, ...place, '--json', ...more]
  member.cli = workshop.start(args)
}

async function kill(member: Member): Promise<void> {
  member.cli.kill('SIGKILL')
  await member.cli.finished
}

async function ok(...args: string[]): Promise<string> {
  const end = await workshop.run([...args, '--url', all])
  expect([args, end.code, end.stderr]).toEqual([args, 0, expect.anything()])
  return end.stdout
}

/** Flips a bit in the middle of what the newest log file holds. */
function damage({ data }: Member): string {
  const name = readdirSync(data)
    .filter((one) => /^log-.*\d$/.test(one))
    .sort()
    .at(-1) as string
  const file = join(data, name)
  const fd = openSync(file, 'r+')
  const bytes = Buffer.alloc(statSync(file).size)
  readSync(fd, bytes, 0, bytes.length, 0)
  const end = bytes.findLastIndex((byte) => byte !== 0)
  const at = Math.floor(end / 2)
  bytes[at] = (bytes[at] as number) ^ 1
  writeSync(fd, bytes, at, 1, at)
  closeSync(fd)
  return name
}

function aside({ data }: Member): string[] {
  return readdirSync(data).filter((one) => one.startsWith('damaged-'))
}

async function isVoter(member: Member): Promise<boolean> {
  const end = await workshop.run(['cluster', 'status', '--json', '--url', all])
  if (end.code !== 0) return false
  const { members: listed } = JSON.parse(end.stdout) as { members?: { name: string; role: string; state: string }[] }
  return listed?.some(({ name, role, state }) => name === member.name && role === 'voter' && state === 'ready') === true
}

describe('a member that lost its data', () => {
  test('refuses to start, and rejoins with --repair', async () => {
    const [, second] = members as [Member, Member]
    await ok('put', 'kept', 'here')
    await kill(second)
    const file = damage(second)
    start(second)
    const refusal = await second.cli.finished
    expect([refusal.code, refusal.stderr]).toEqual([74, expect.stringContaining(file)])
    expect(refusal.stderr).toContain('--repair')
    start(second, '--repair')
    await until(() => isVoter(second), 'the member is a voter again', LIMIT_MS)
    expect(aside(second)).toHaveLength(1)
    expect(existsSync(join(second.data, aside(second)[0] as string, file))).toBe(true)
    // Its vote counts: it makes a majority with one other.
    await kill(members[0] as Member)
    expect(await ok('get', 'kept')).toContain('here')
    await ok('put', 'kept', 'still')
    start(members[0] as Member)
    await (members[0] as Member).cli.printed('"url"')
  })

  test('rejoins with a wiped disk', async () => {
    const [, , third] = members as [Member, Member, Member]
    await kill(third)
    rmSync(third.data, { recursive: true })
    start(third, '--repair')
    await until(() => isVoter(third), 'the member is a voter again', LIMIT_MS)
    expect(aside(third)).toEqual([])
  })

  test('rejoins as a new member with a folder that only has the record of its bootstrap', async () => {
    const [, second] = members as [Member, Member]
    const record = join(second.data, 'muster.json')
    const numberOf = () => (JSON.parse(readFileSync(record, 'utf8')) as { node: number }).node
    const before = numberOf()
    await kill(second)
    for (const name of readdirSync(second.data)) {
      if (name !== 'muster.json') rmSync(join(second.data, name), { recursive: true })
    }
    start(second, '--repair')
    await complained(second.cli, 'was emptied')
    await until(() => isVoter(second), 'the member is a voter again', LIMIT_MS)
    expect(numberOf()).not.toBe(before)
  })

  test('does not discard a folder of a later version', async () => {
    const [, second] = members as [Member, Member]
    await kill(second)
    const before = aside(second)
    const file = join(second.data, 'identity')
    const own = readFileSync(file)
    const later = JSON.stringify({ ...(JSON.parse(own.toString().split('\n')[0] as string) as object), format: 2 })
    writeFileSync(file, `${later}\n${crc32(Buffer.from(later)).toString(16).padStart(8, '0')}\n`)
    start(second, '--repair')
    const refusal = await second.cli.finished
    expect([refusal.code, refusal.stderr]).toEqual([74, expect.stringContaining('has format 2; this program reads')])
    expect(aside(second)).toEqual(before)
    writeFileSync(file, own)
    start(second, '--repair')
    await until(() => isVoter(second), 'the member is a voter again', LIMIT_MS)
    expect(aside(second)).toEqual(before)
  })

  test('does not replace a running member', async () => {
    const [first] = members as [Member]
    const twin = { ...first, data: workshop.folder(), url: `http://127.0.0.1:${await freePort()}` }
    const peer = `127.0.0.1:${await freePort()}`
    const listed = list.replace(first.peer, peer)
    const place = ['--name', first.name, '--peer-listen', peer, '--cluster', listed, '--accept-repair']
    const cli = workshop.start(['serve', '--data', twin.data, '--listen', new URL(twin.url).host, ...place, '--repair'])
    await complained(cli, 'its place is taken')
    cli.kill('SIGKILL')
    await cli.finished
    expect(await isVoter(first)).toBe(true)
  })

  test('continues to quarantine its folder after a kill in between, and never starts with the rest', async () => {
    const [url, peer] = [`http://127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
    const data = workshop.folder()
    const alone = ['serve', '--data', data, '--listen', new URL(url).host, '--json']
    const place = ['--name', 'n1', '--peer-listen', peer, '--cluster', `n1=${peer}`, '--accept-repair']
    let cli = workshop.start(alone)
    await cli.printed('"url"')
    expect((await workshop.run(['put', 'kept', 'here', '--url', url])).code).toBe(0)
    cli.kill('SIGKILL')
    await cli.finished
    cli = workshop.start([...alone, ...place])
    await cli.printed('"url"')
    cli.kill('SIGKILL')
    await cli.finished
    // The mark is there, and the log was moved; the identity and the snapshot of the beginning were not yet.
    const moved = join(data, 'damaged-before')
    mkdirSync(moved)
    writeFileSync(join(data, 'muster.json'), '{"node":12345,"lost":true}\n')
    for (const name of readdirSync(data)) if (/^(log|mark)-/.test(name)) renameSync(join(data, name), join(moved, name))
    cli = workshop.start(alone)
    expect(await cli.finished).toMatchObject({ code: 64, stderr: expect.stringContaining('lost its data') })
    cli = workshop.start([...alone, ...place])
    expect(await cli.finished).toMatchObject({ code: 74, stderr: expect.stringContaining('--repair') })
    cli = workshop.start([...alone, ...place, '--repair'])
    await complained(cli, 'lost its data')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(cli.stdout).not.toContain('"url"')
    cli.kill('SIGKILL')
    await cli.finished
    expect(readdirSync(data)).not.toContain('identity')
  })

  test('never bootstraps an empty service, not even with other members that lost their data', async () => {
    for (const member of members) await kill(member)
    for (const member of members) damage(member)
    for (const member of members) start(member, '--repair')
    for (const { cli } of members) await complained(cli, 'lost its data')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    for (const { cli } of members) expect(cli.stdout).not.toContain('"url"')
  })
})
