import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../../tests/services/ports.js'
import { type Cli, until, Workshop } from './support/cli.js'

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
let copies: string
let list: string
let all: string

beforeAll(async () => {
  const folder = workshop.folder()
  copies = workshop.folder()
  for (const name of ['n1', 'n2', 'n3']) {
    const url = `http://127.0.0.1:${await freePort()}`
    const peer = `127.0.0.1:${await freePort()}`
    members.push({ name, data: join(folder, name), url, peer, cli: undefined as never })
  }
  list = members.map(({ name, peer }) => `${name}=${peer}`).join(',')
  all = members.map(({ url }) => url).join(',')
  for (const member of members) start(member)
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

/** Runs a command until there is a leader that answers it. */
async function ok(...args: string[]): Promise<string> {
  let stdout = ''
  const succeeds = async (): Promise<boolean> => {
    const end = await workshop.run([...args, '--url', all])
    if (end.code !== 69) expect([args, end.code, end.stderr]).toEqual([args, 0, expect.anything()])
    stdout = end.stdout
    return end.code === 0
  }
  await until(succeeds, args.join(' '), LIMIT_MS)
  return stdout
}

async function isVoter(member: Member): Promise<boolean> {
  const end = await workshop.run(['cluster', 'status', '--json', '--url', all])
  if (end.code !== 0) return false
  const { members: listed } = JSON.parse(end.stdout) as { members?: { name: string; role: string; state: string }[] }
  return listed?.some(({ name, role, state }) => name === member.name && role === 'voter' && state === 'ready') === true
}

/** Copies the data folder of a member that does not run, but for what says who owns it. */
function copy({ name, data }: Member): void {
  rmSync(join(copies, name), { recursive: true, force: true })
  const filter = (path: string): boolean => !basename(path).startsWith('owner')
  cpSync(data, join(copies, name), { recursive: true, preserveTimestamps: true, filter })
}

function putBack({ name, data }: Member): void {
  rmSync(data, { recursive: true })
  cpSync(join(copies, name), data, { recursive: true, preserveTimestamps: true })
}

async function comesBackByRepair(member: Member): Promise<void> {
  start(member)
  const refusal = await member.cli.finished
  expect([refusal.code, refusal.stderr]).toEqual([74, expect.stringContaining('contradicts its cluster')])
  expect(refusal.stderr).toContain('--repair')
  start(member, '--repair')
  await until(() => isVoter(member), 'the member is a voter again', LIMIT_MS)
  const aside = readdirSync(member.data).find((name) => name.startsWith('damaged-')) as string
  expect(existsSync(join(member.data, aside, 'contradicted'))).toBe(true)
}

describe('a member that gets an old copy of its data folder', () => {
  test('stops when another member has newer entries, and rejoins with --repair', async () => {
    const [, second] = members as [Member, Member]
    await ok('put', 'kept', 'early')
    await kill(second)
    copy(second)
    start(second)
    await until(() => isVoter(second), 'the member is back', LIMIT_MS)
    for (let i = 0; i < 5; i++) await ok('put', 'kept', `late${i}`)
    await until(() => isVoter(second), 'the member has everything', LIMIT_MS)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    await kill(second)
    putBack(second)
    start(second)
    const end = await second.cli.finished
    expect(end.code).toBe(74)
    expect(end.stderr).toMatch(
      /the disk of this member was set back: n\d \(node \d+\) remembers that entry \d+ of term \d/,
    )
    expect(await ok('get', 'kept')).toContain('late4')
    await comesBackByRepair(second)
  })

  test('goes undetected while the members with newer entries are down; a returning member reports it, and the others serve', async () => {
    const [first, second, third] = members as [Member, Member, Member]
    await kill(third)
    await ok('put', 'kept', 'before')
    await kill(second)
    copy(second)
    start(second)
    // Committed by the first and the second.
    await ok('put', 'kept', 'forgotten')
    await kill(first)
    await kill(second)
    putBack(second)
    start(second)
    start(third)
    await ok('put', 'later', 'here')
    expect(await ok('get', 'kept')).toContain('before')
    start(first)
    const end = await first.cli.finished
    expect(end.code).toBe(74)
    expect(end.stderr).toMatch(/a majority has gone on without entries that are committed here: n\d \(node \d+\)/)
    expect(await ok('get', 'later')).toContain('here')
    await ok('put', 'later', 'still')
    await comesBackByRepair(first)
  })
})
