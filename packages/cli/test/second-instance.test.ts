import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cli, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'
import { removeFolder } from '../../../tests/services/remove.js'

interface Member {
  readonly name: string
  readonly data: string
  readonly url: string
  readonly peer: string
  cli: Cli
}

const EXIT_STORAGE = 74
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
  for (const member of members) member.cli = start(member)
  await Promise.all(members.map(({ cli }) => cli.printed('"url"')))
})
afterAll(() => workshop.close())

function start({ name, data, url, peer }: Omit<Member, 'cli'>, ...more: string[]): Cli {
  const place = ['--name', name, '--peer-listen', peer, '--cluster', list, '--accept-repair']
  return workshop.start(['serve', '--data', data, '--listen', new URL(url).host, ...place, '--json', ...more])
}

async function ready(): Promise<void> {
  await until(async () => {
    const answers = await Promise.all(members.map(({ url }) => fetch(`${url}/readyz`).catch(() => undefined)))
    return answers.every((answer) => answer?.ok === true)
  }, 'all members are ready')
}

async function ok(...args: string[]): Promise<void> {
  const end = await workshop.run([...args, '--url', all])
  expect([args, end.code, end.stderr]).toEqual([args, 0, ''])
}

async function leader(): Promise<Member> {
  const answer = await fetch(`${members[0]?.url}/readyz`)
  const { leader: name } = (await answer.json()) as { leader: string }
  return members.find((member) => member.name === name) as Member
}

describe('a member of a cluster whose data folder is deleted', () => {
  test('stops, the others serve, and it rejoins with --repair', async () => {
    const lost = await leader()
    await ok('put', 'kept', 'here')
    removeFolder(lost.data)
    const { code, stderr } = await lost.cli.finished
    expect([code, stderr]).toEqual([EXIT_STORAGE, expect.stringContaining('--repair')])
    await ok('put', 'meanwhile', 'served')
    lost.cli = start(lost, '--repair')
    await lost.cli.printed('"url"')
    await until(async () => {
      const { stdout } = await workshop.run(['cluster', 'status', '--json', '--url', all])
      const { members: listed } = JSON.parse(stdout) as { members?: { role: string; state: string }[] }
      return listed?.every(({ role, state }) => role !== 'learner' && state === 'ready') === true
    }, 'it is a voter again')
    await ready()
  })
})

describe('a second process with the node number of a member', () => {
  test('is refused by the others and stops, while the first keeps serving', async () => {
    for (const original of members) {
      const { name, data } = original
      const copy = { name, data: `${data}-copy`, url: `http://127.0.0.1:${await freePort()}`, peer: '' }
      copy.peer = `127.0.0.1:${await freePort()}`
      await until(() => readdirSync(data).every((file) => !file.endsWith('.tmp')), 'the files in reserve are made')
      // As on another machine: here, the copy would be refused because of its owner file.
      cpSync(data, copy.data, { recursive: true, filter: (file) => !/\/owner[.-][^/]*$/.test(file) })
      const { code, stderr } = await start(copy).finished
      expect([name, code]).toEqual([name, EXIT_STORAGE])
      expect(stderr).toMatch(new RegExp(`another process with the node number of ${name} .* runs at ${original.peer}`))
      expect(original.cli.running).toBe(true)
      await ok('put', name, 'still there')
      removeFolder(copy.data)
    }
    await ready()
    for (const { cli } of members) expect(cli.stderr).not.toContain('another process')
  })

  test('is distinguished from a restart of the member, which may rejoin at once', async () => {
    for (const member of members) {
      member.cli.kill('SIGKILL')
      await member.cli.finished
      member.cli = start(member)
      await member.cli.printed('"url"')
      await ready()
      expect(member.cli.running).toBe(true)
    }
    await ok('put', 'after', 'restarts')
  })
})
