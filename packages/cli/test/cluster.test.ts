import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cli, type Finished, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'

/** Three members, each a process of its own, and two dozen commands. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

interface Member {
  readonly name: string
  readonly data: string
  readonly url: string
  readonly peer: string
  cli: Cli
}

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
  for (const member of members) start(member)
  await Promise.all(members.map(({ cli }) => cli.printed('"url"')))
})
afterAll(() => workshop.close())

function start(member: Member): void {
  const place = ['--name', member.name, '--peer-listen', member.peer, '--cluster', list]
  const listen = new URL(member.url).host
  const args = ['serve', '--data', member.data, '--listen', listen, ...place, '--json', '--log-level', 'error']
  member.cli = workshop.start(args)
}

async function ok(...args: string[]): Promise<Finished> {
  const end = await workshop.run(args)
  expect([args, end.code, end.stderr]).toEqual([args, 0, expect.anything()])
  return end
}

async function leader(): Promise<Member> {
  const { leader: name } = JSON.parse((await ok('cluster', 'status', '--url', all, '--json')).stdout)
  return members.find((member) => member.name === name) as Member
}

describe('a handle', () => {
  test('is acquired, renewed and released through any member', async () => {
    for (const [i, { url }] of members.entries()) {
      const next = members[(i + 1) % members.length] as Member
      const handle = (await ok('acquire', 'deploy', '--ttl', '60s', '--wait', '5s', '--url', url)).stdout.trim()
      await ok('renew', handle, '--url', next.url)
      await ok('release', handle, '--url', next.url)
    }
  })

  test('is acquired during an election', async () => {
    const dead = await leader()
    dead.cli.kill('SIGKILL')
    await dead.cli.finished
    const handle = (await ok('acquire', 'deploy', '--ttl', '60s', '--url', all)).stdout.trim()
    await ok('release', handle, '--url', all)
    start(dead)
    await dead.cli.printed('"url"')
  })
})

describe('cluster', () => {
  test('prints the status of the leader, through any member', async () => {
    for (const { url } of members) {
      // On a busy machine another one may come to lead between two questions.
      await until(async () => {
        const { name } = await leader()
        const { stdout } = await ok('cluster', 'status', '--url', url)
        return stdout.includes(`asked ${name} (leader)`) && stdout.match(/ ready /g)?.length === members.length
      }, `the status at ${url} is that of the leader, and all are ready`)
    }
  })

  test('refuses an impossible change, with a hint', async () => {
    const [first] = members as [Member]
    const again = await workshop.run(['cluster', 'add', `${first.name}=${first.peer}`, '--url', all])
    expect([again.code, again.stderr]).toEqual([64, expect.stringContaining('n1 is a voter already')])
    const nameless = await workshop.run(['cluster', 'add', 'n4', '--url', all])
    expect([nameless.code, nameless.stderr]).toEqual([64, expect.stringContaining('NAME=HOST:PORT')])
    const away = await workshop.run(['cluster', 'add', `n4=127.0.0.1:${await freePort()}`, '--url', all])
    expect([away.code, away.stderr]).toEqual([69, expect.stringContaining('--peer-listen')])
  })

  test('refuses to serve a member alone', async () => {
    const [first] = members as [Member]
    first.cli.kill('SIGTERM')
    await first.cli.finished
    const alone = await workshop.run(['serve', '--data', first.data, '--listen', '127.0.0.1:0'])
    expect([alone.code, alone.stderr]).toEqual([64, expect.stringContaining('--name n1')])
    start(first)
    await first.cli.printed('"url"')
  })

  test('reports a missing quorum through every member', async () => {
    const [, second, third] = members as [Member, Member, Member]
    for (const { cli } of [second, third]) {
      cli.kill('SIGKILL')
      await cli.finished
    }
    await until(async () => (await fetch(`${members[0]?.url}/readyz`)).status === 503, 'the last one knows')
    const commands = [['acquire', 'x', '--wait', '1s'], ['cluster', 'remove', 'n2'], ['ls']]
    for (const command of commands) {
      const end = await workshop.run([...command, '--url', members[0]?.url as string])
      expect([command, end.code, end.stderr]).toEqual([command, 69, expect.stringContaining('cluster status')])
    }
    const { stdout } = await ok('cluster', 'status', '--url', all)
    expect(stdout).toContain('leader none')
    expect(stdout).toMatch(/^n1 +voter +no leader is known/m)
    expect(stdout).toMatch(/^n2 +voter +no response/m)
  })
})
