import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLocks } from 'leasehold'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Authority } from '../../server/test/support/certificates.js'
import { type Cli, until, Workshop } from './support/cli.js'
import { freePort } from '../../../tests/services/ports.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 })

const workshop = new Workshop()
let authority: Authority
let urls: string
let keys: string
let admin: string
const members: Cli[] = []

beforeAll(async () => {
  authority = new Authority()
  const folder = workshop.folder()
  keys = join(folder, 'keys.json')
  admin = await create('--rule', '*:acquire,read,steal,admin', '--name', 'operator')
  const names = ['n1', 'n2', 'n3']
  const places = await Promise.all(names.map(async () => ({ port: await freePort(), peer: await freePort() })))
  const cluster = names.map((name, i) => `${name}=127.0.0.1:${places[i]?.peer}`).join(',')
  urls = places.map(({ port }) => `https://127.0.0.1:${port}`).join(',')
  for (const [i, name] of names.entries()) {
    const [own, between] = [authority.issue(name), authority.issue(`${name}-peer`)]
    const config = join(folder, `${name}.json`)
    const settings = {
      data: join(folder, name),
      listen: `127.0.0.1:${places[i]?.port}`,
      name,
      peerListen: `127.0.0.1:${places[i]?.peer}`,
      cluster,
      keys,
      tlsCert: own.cert,
      tlsKey: own.key,
      peerTlsCert: between.cert,
      peerTlsKey: between.key,
      peerTlsCa: authority.ca,
      logLevel: 'error',
    }
    writeFileSync(config, JSON.stringify(settings))
    expect((await workshop.run(['serve', '--config', config, '--check-config'])).code).toBe(0)
    members.push(workshop.start(['serve', '--config', config, '--json']))
  }
  await Promise.all(members.map((member) => member.printed('"url"')))
})
afterAll(async () => {
  await workshop.close()
  authority.remove()
})

async function create(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await workshop.run(['key', 'create', '--keys', keys, ...args])
  expect([code, stderr]).toEqual([0, ''])
  return stdout.trim()
}

function run(key: string, ...args: string[]) {
  return workshop.run([...args, '--url', urls, '--tls-ca', authority.ca], { env: { LEASEHOLD_API_KEY: key } })
}

describe('a cluster with TLS and keys', () => {
  test('has a leader, and serves a client with a key', async () => {
    const status = await run(admin, 'cluster', 'status')
    expect(status.stdout.match(/ ready /g)).toHaveLength(3)
    expect(status.stdout).toContain('https://127.0.0.1:')
  })

  test('accepts a new key without a restart, and applies its rules', async () => {
    const billing = await create('--rule', 'billing:acquire,read', '--name', 'billing worker')
    await until(async () => (await run(billing, 'ls', 'billing')).code === 0, 'the key is known')
    const taken = await run(billing, 'acquire', 'billing/1')
    expect(taken.code).toBe(0)
    expect((await run(billing, 'release', taken.stdout.trim())).code).toBe(0)
    for (const [key, name] of [
      [billing, 'payroll/1'],
      ['', 'billing/1'],
      ['lh_000000000000_wrong', 'billing/1'],
    ] as const) {
      const refused = await run(key, 'acquire', name)
      expect([key, refused.code]).toEqual([key, 77])
    }
    expect((await run(billing, 'cluster', 'transfer', 'n1')).code).toBe(77)
  })

  test('reports a refused key to the client', async () => {
    const tls = { ca: readFileSync(authority.ca) }
    await using locks = createLocks(urls, { apiKey: admin, tls })
    expect(await locks.request('job', (hold) => hold.token > 0n)).toBe(true)
    await using wrong = createLocks(urls, { apiKey: 'wrong', tls })
    await expect(wrong.acquire('job')).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  test('is rejected by a client that does not trust its CA', async () => {
    const refused = await workshop.run(['ls', '--url', urls], { env: { LEASEHOLD_API_KEY: admin } })
    expect(refused.code).toBe(69)
  })

  test('rejects a revoked key within seconds', async () => {
    const key = await create('--rule', '*:read')
    await until(async () => (await run(key, 'ls')).code === 0, 'the key is known')
    const listed = JSON.parse((await workshop.run(['key', 'ls', '--keys', keys, '--json'])).stdout) as {
      keys: { id: string }[]
    }
    await workshop.run(['key', 'revoke', listed.keys.at(-1)?.id as string, '--keys', keys])
    await until(async () => (await run(key, 'ls')).code === 77, 'the key is worth nothing')
  })
})

describe('settings', () => {
  test('are rejected by name if they are wrong', async () => {
    const config = join(workshop.folder(), 'config.json')
    for (const [content, why] of [
      ['{', 'cannot read the config file'],
      ['[]', 'one JSON object'],
      ['{"lisen":"x"}', 'no setting "lisen"'],
      ['{"epoch":"many"}', 'epoch is wrong'],
      ['{"repair":"yes"}', 'true or false'],
      ['{"logLevel":"loud"}', 'one of info'],
      ['{"tlsCert":"x"}', '--tls-key is missing'],
      ['{"keys":"none.json"}', 'cannot read the keys'],
      ['{"listen":"0.0.0.0:4100"}', 'refusing to listen'],
      ['{"cluster":"n1=a:1"}', 'needs --name'],
      ['{"allowOrigins":"https://a.example,https://*.example"}', '"https://*.example" is not an origin'],
    ] as const) {
      writeFileSync(config, content)
      const { code, stderr } = await workshop.run(['serve', '--config', config, '--check-config'])
      expect([content, [64, 77].includes(code as number), stderr]).toEqual([
        content,
        true,
        expect.stringContaining(why),
      ])
    }
  })

  test('come from options, then the environment, then the file', async () => {
    const folder = workshop.folder()
    const config = join(folder, 'config.json')
    writeFileSync(config, JSON.stringify({ data: join(folder, 'a'), listen: '127.0.0.1:1', logLevel: 'error' }))
    const env = { LEASEHOLD_DATA: join(folder, 'b'), LEASEHOLD_LISTEN: '127.0.0.1:2' }
    const cli = workshop.start(['serve', '--config', config, '--listen', '127.0.0.1:0', '--json'], { env })
    await cli.printed('"url"')
    expect(JSON.parse(cli.stdout)).toMatchObject({ data: join(folder, 'b') })
  })
})
