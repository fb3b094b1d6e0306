import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Service, until, Workshop } from './support/cli.js'

const workshop = new Workshop()
afterAll(() => workshop.close())

async function post(service: Service, path: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const json = (await answer.json()) as Record<string, unknown>
  expect([path, answer.status, json]).toEqual([path, 200, json])
  return json
}

interface Listing {
  held: { locks: { name: string; token: string }[]; client: string }[]
  pending: { client: string }[]
}

async function ls(service: Service): Promise<Listing> {
  return (await (await fetch(`${service.url}/v1/locks`)).json()) as Listing
}

describe('leasehold serve', () => {
  test('refuses a second server on the same data folder, and the first one continues', async () => {
    const data = workshop.folder()
    const first = await workshop.serve(data)
    const second = await workshop.run(['serve', '--data', data, '--listen', '127.0.0.1:0'])
    expect(second.code).toBe(74)
    expect(second.stderr).toContain(data)
    expect(second.stderr).toMatch(/owner|in use|another process/i)
    expect((await post(first, '/v1/acquire', { name: 'still-here' })).token).toMatch(/^\d+$/)
  })

  test('reports a port in use, and creates no data folder', async () => {
    const first = await workshop.serve(workshop.folder())
    const data = join(workshop.folder(), 'new')
    const listen = new URL(first.url).host
    const second = await workshop.run(['serve', '--data', data, '--listen', listen])
    expect(second.code).toBe(69)
    expect(second.stderr).toContain(listen)
    expect(existsSync(data)).toBe(false)
    await workshop.serve(data)
  })

  test('keeps hold, token, queue and registers after kill -9 right after an acknowledgement, and tokens increase', async () => {
    const data = workshop.folder()
    let service = await workshop.serve(data)
    const listen = ['--listen', new URL(service.url).host]
    let last = 0n
    for (let round = 1; round <= 2; round++) {
      const name = `kill/${round}`
      const held = await post(service, '/v1/acquire', { name, ttl: '240s', client: 'holder' })
      const waiter = workshop.start([
        'run',
        name,
        '--url',
        service.url,
        '--wait',
        '240s',
        '--',
        'sh',
        '-c',
        'echo "$LEASEHOLD_FENCING_TOKEN"',
      ])
      await until(async () => (await ls(service)).pending.length === 1, 'it waits')
      const put = await workshop.run([
        'put',
        `config/${round}`,
        `value ${round}`,
        '--if-version',
        '0',
        '--url',
        service.url,
        '--json',
      ])
      const version = (JSON.parse(put.stdout) as { version: string }).version
      service.cli.kill('SIGKILL')
      await service.cli.finished

      service = await workshop.serve(data, listen)
      const after = await ls(service)
      const mine = after.held.filter((row) => row.locks[0]?.name === name)
      expect(mine.map((row) => row.locks[0]?.token)).toEqual([held.token])
      expect(after.pending).toHaveLength(1)
      const got = await fetch(`${service.url}/v1/registers?key=config/${round}`)
      expect(await got.json()).toMatchObject({ key: `config/${round}`, version, value: `value ${round}` })

      await post(service, '/v1/release', { hold: held.hold })
      const end = await waiter.finished
      expect([end.code, end.stderr]).toEqual([0, ''])
      const token = BigInt(end.stdout.trim())
      expect(BigInt(held.token as string)).toBeGreaterThan(last)
      expect(token).toBeGreaterThan(BigInt(held.token as string))
      last = token
    }
  })

  test('stops at SIGTERM with exit code 0, and keeps everything that was acknowledged', async () => {
    const data = workshop.folder()
    const first = await workshop.serve(data)
    const held = await post(first, '/v1/acquire', { name: 'kept', ttl: '240s' })
    const waiting = workshop.start(['acquire', 'kept', '--wait', '240s', '--url', first.url])
    await until(async () => (await ls(first)).pending.length === 1, 'it waits')
    first.cli.kill('SIGTERM')
    const end = await first.cli.finished
    expect([end.code, end.signal]).toEqual([0, null])
    expect((await waiting.finished).code).not.toBe(0)
    const second = await workshop.serve(data)
    expect((await ls(second)).held[0]?.locks).toMatchObject([{ name: 'kept', token: held.token }])
  })

  test('accepts --epoch for an empty service only', async () => {
    const data = workshop.folder()
    const first = await workshop.serve(data, ['--epoch', '5'])
    expect(first.epoch).toBe(5)
    const { token } = await post(first, '/v1/acquire', { name: 'x' })
    expect(BigInt(token as string) >> 48n).toBe(5n)
    first.cli.kill('SIGTERM')
    await first.cli.finished
    const refused = await workshop.run(['serve', '--data', data, '--listen', '127.0.0.1:0', '--epoch', '6'])
    expect(refused.code).toBe(64)
    expect(refused.stderr).toContain('epoch 5')
  })

  test('requires --allow-anonymous for a non-loopback address', async () => {
    const data = workshop.folder()
    const refused = await workshop.run(['serve', '--data', data, '--listen', '0.0.0.0:0'])
    expect(refused.code).toBe(77)
    expect(refused.stderr).toContain('--allow-anonymous')
  })

  test('accepts pages of --allow-origins only', async () => {
    const env = { LEASEHOLD_ALLOW_ORIGINS: 'https://tools.example, HTTPS://App.example:8443/' }
    const cli = workshop.start(['serve', '--data', workshop.folder(), '--listen', '127.0.0.1:0', '--json'], { env })
    await cli.printed('"url"')
    const { url } = JSON.parse(cli.stdout) as { url: string }
    const ask = async (origin: string) => {
      const { status, headers } = await fetch(`${url}/v1/locks`, { headers: { origin } })
      return [status, headers.get('access-control-allow-origin')]
    }
    expect(await ask('https://tools.example')).toEqual([200, 'https://tools.example'])
    expect(await ask('https://app.example:8443')).toEqual([200, 'https://app.example:8443'])
    expect(await ask('https://app.example')).toEqual([403, null])
    expect(await ask('http://tools.example')).toEqual([403, null])
  })

  test('exits with 64 for wrong options, and creates no folder', async () => {
    const folder = workshop.folder()
    const data = join(folder, 'data')
    const wrong = [['--listen', 'nowhere'], ['--listen', '127.0.0.1:99999'], ['--epoch', '0'], ['--bogus']]
    const ends = await Promise.all(wrong.map((args) => workshop.run(['serve', '--data', data, ...args])))
    expect(ends.map((end) => end.code)).toEqual([64, 64, 64, 64])
    expect(readdirSync(folder)).toEqual([])
  })

  test('prints without --json once that it founded a service, and at every start that it is ready', async () => {
    const args = ['serve', '--data', workshop.folder(), '--listen', '127.0.0.1:0']
    const ready = 'leasehold is ready on http:\\/\\/127\\.0\\.0\\.1:\\d+ .*\\n'
    const first = workshop.start(args)
    await first.printed('leasehold is ready')
    expect(first.stdout).toMatch(new RegExp(`^founded a new service in .*; its tokens start above \\d{15}\n${ready}$`))
    first.kill('SIGTERM')
    await first.finished
    const second = workshop.start(args)
    await second.printed('leasehold is ready')
    expect(second.stdout).toMatch(new RegExp(`^${ready}$`))
  })

  test('starts above the tokens of the lost service in an emptied folder', async () => {
    const data = join(workshop.folder(), 'data')
    const args = ['serve', '--data', data, '--listen', '127.0.0.1:0', '--json']
    const tokens: bigint[] = []
    for (let life = 0; life < 2; life++) {
      const service = workshop.start(args)
      await service.printed('\n')
      const { url } = JSON.parse(service.stdout) as { url: string }
      const answer = await fetch(`${url}/v1/acquire`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'doc', ttl: '60s' }),
      })
      tokens.push(BigInt(((await answer.json()) as { token: string }).token))
      service.kill('SIGKILL')
      await service.finished
      rmSync(data, { recursive: true, force: true })
    }
    expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint)
  })
})
