import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../tests/services/ports.js'
import { Authority } from '../../server/test/support/certificates.js'
import { type Cli, Workshop } from './support/cli.js'

const ATTACKER = fileURLToPath(new URL('support/peer-attacker.mjs', import.meta.url))

const workshop = new Workshop()
const authority = new Authority()
const members: Cli[] = []
const peerPorts: number[] = []
let folder: string
let urls: string
let cluster: string

/** Three members on one machine, whose certificates are for `localhost`, and one authority for members and clients. */
beforeAll(async () => {
  folder = workshop.folder()
  const places = await Promise.all(
    ['n1', 'n2', 'n3'].map(async (name) => ({ name, port: await freePort(), peer: await freePort() })),
  )
  cluster = places.map(({ name, peer }) => `${name}=localhost:${peer}`).join(',')
  urls = places.map(({ port }) => `http://127.0.0.1:${port}`).join(',')
  for (const { name, port, peer } of places) {
    const { cert, key } = authority.issue(name, { names: ['localhost'], usage: 'serverAuth,clientAuth' })
    peerPorts.push(peer)
    members.push(
      workshop.start([
        ...['serve', '--data', join(folder, name), '--listen', `127.0.0.1:${port}`, '--name', name, '--json'],
        ...['--peer-listen', `127.0.0.1:${peer}`, '--cluster', cluster, '--log-level', 'warn'],
        ...['--peer-tls-cert', cert, '--peer-tls-key', key, '--peer-tls-ca', authority.ca],
      ]),
    )
  }
  await Promise.all(members.map((member) => member.printed('"url"')))
})
afterAll(async () => {
  await workshop.close()
  authority.remove()
})

/** Runs the attacker as a process of its own. Returns everything that it got from the peer port. */
async function attack(deed: 'status' | 'term' | 'command', names: readonly string[], usage?: string): Promise<string> {
  const { cert, key } = authority.issue(`attacker-${deed}-${names[0]}-${usage ?? 'any'}`, {
    names,
    ...(usage && { usage }),
  })
  const [target, other] = [identityIn('n1'), identityIn('n2')]
  const claim = [target.cluster, String(other.node), String(target.node)]
  const args = [ATTACKER, deed, String(peerPorts[0]), authority.ca, cert, key, ...claim]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let got = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (got += text))
  await new Promise((resolve) => child.once('close', resolve))
  return got
}

interface Status {
  readonly cluster: string
  readonly term: number
  readonly members: readonly { readonly name: string; readonly node: string; readonly state: string }[]
}

async function status(): Promise<Status> {
  const { code, stdout, stderr } = await workshop.run(['cluster', 'status', '--json', '--url', urls])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Status
}

/** Node numbers and the cluster's id are no secrets: backups and logs have them. */
function identityIn(name: string): { cluster: string; node: number } {
  const [line] = readFileSync(join(folder, name, 'identity'), 'utf8').split('\n')
  return JSON.parse(line as string) as { cluster: string; node: number }
}

describe('the peer port of a cluster with TLS', () => {
  test.each([
    ['with a name of its own', ['app.example'], undefined],
    ['with the name of a member, for clients only', ['localhost'], 'clientAuth'],
  ] as const)('gives nothing to a client certificate %s', async (_what, names, usage) => {
    expect(await attack('status', names, usage)).toBe('')
    expect(members[0]?.stderr).toContain('rejected a connection to the peer port')
  })

  test.each(['term', 'command'] as const)('takes no %s from a client certificate', async (deed) => {
    const before = await status()
    await attack(deed, ['app.example'])
    await attack(deed, ['localhost'], 'clientAuth')
    const after = await status()
    expect(after.term).toBe(before.term)
    expect(after.members.map(({ state }) => state)).toEqual(['ready', 'ready', 'ready'])
    const { code } = await workshop.run(['get', 'stolen', '--url', urls])
    expect(code).toBe(1)
  })

  test('survives a huge term, even of a member that was taken over', async () => {
    const before = await status()
    await attack('term', ['localhost'], 'serverAuth,clientAuth')
    const after = await status()
    expect(after.term).toBeLessThan(before.term + 10)
    expect(after.members.map(({ state }) => state)).toEqual(['ready', 'ready', 'ready'])
    expect(members.every((member) => member.running)).toBe(true)
    // The frame has arrived, and was looked at.
    expect(members[0]?.stderr).toContain('1 of 3 members report it')
  })
})

describe('serve refuses a peer port that everyone can use', () => {
  const place = [
    'serve',
    '--check-config',
    '--name',
    'n1',
    '--cluster',
    'n1=10.0.0.1:4200,n2=10.0.0.2:4200,n3=10.0.0.3:4200',
  ]

  test('beyond loopback without TLS', async () => {
    const { code, stderr } = await workshop.run([...place, '--peer-listen', '0.0.0.0:4200'])
    expect([code, stderr]).toEqual([77, expect.stringContaining('--allow-insecure-peers')])
    expect((await workshop.run([...place, '--peer-listen', '0.0.0.0:4200', '--allow-insecure-peers'])).code).toBe(0)
    expect((await workshop.run([...place, '--peer-listen', '127.0.0.1:4200'])).code).toBe(0)
  })

  test('and never accepts repairs there', async () => {
    const open = ['--peer-listen', '0.0.0.0:4200', '--allow-insecure-peers', '--accept-repair']
    const { code, stderr } = await workshop.run([...place, ...open])
    expect([code, stderr]).toEqual([77, expect.stringContaining('--accept-repair on 0.0.0.0 needs TLS')])
  })

  test('with allowed names that nothing checks', async () => {
    const { code, stderr } = await workshop.run([
      ...place,
      '--peer-listen',
      '127.0.0.1:1',
      '--peer-tls-allowed-names',
      'n1',
    ])
    expect([code, stderr]).toEqual([64, expect.stringContaining('--peer-tls-cert')])
  })
})

describe('switches in the environment', () => {
  const check = (value: string) =>
    workshop.run(['serve', '--check-config', '--listen', '0.0.0.0:4100'], { env: { LEASEHOLD_ALLOW_ANONYMOUS: value } })

  test.each(['1', 'true', 'YES', 'on', 'True'])('%s is on', async (value) => {
    expect((await check(value)).code).toBe(0)
  })

  test.each(['0', 'False', 'no', 'OFF', ''])('%j is off', async (value) => {
    expect((await check(value)).code).toBe(77)
  })

  test('anything else is refused', async () => {
    const { code, stderr } = await check('flase')
    expect([code, stderr]).toEqual([64, expect.stringContaining('LEASEHOLD_ALLOW_ANONYMOUS is "flase"')])
  })
})
