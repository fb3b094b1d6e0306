import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { serve } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { createIssuer } from '../support/web-tokens.js'

/** Above the interval in which files are checked. */
const POLL_MS = 1_500

const keys = useKeyFile()

describe('web tokens', () => {
  test('allow what their claim lists, until they expire', async () => {
    const issuer = await createIssuer()
    const jwks = join(keys.folder, 'jwks.json')
    writeFileSync(jwks, issuer.keySet)
    const harness = await serve({ jwt: issuer.optionsFor(jwks) })
    const ask = (text: string, name: string) => harness.call('POST', '/v1/acquire', { name }, bearer(text))
    const good = await issuer.sign({ leasehold: ['billing:acquire'] })
    expect((await ask(good, 'billing/1')).status).toBe(200)
    expect((await ask(good, 'other')).status).toBe(403)
    const foreign = await createIssuer()
    for (const bad of [
      await issuer.sign({ leasehold: ['billing:acquire'] }, { expires: '1 hour ago' }),
      await issuer.sign({ leasehold: ['billing:acquire'] }, { issuer: 'https://evil.example' }),
      await issuer.sign({ leasehold: ['billing:acquire'] }, { audience: 'other' }),
      await foreign.sign({ leasehold: ['billing:acquire'] }),
      await issuer.sign({}),
      await issuer.sign({ leasehold: 'billing:acquire' }),
      await issuer.sign({ leasehold: ['billing:write'] }),
      `${good.split('.').slice(0, 2).join('.')}.`,
    ]) {
      expect((await ask(bad, 'billing/1')).status).toBe(401)
    }
  })

  test('are verified by a key set file that was replaced, and by the previous one while it is malformed', async () => {
    const [former, latter] = [await createIssuer(), await createIssuer()]
    const jwks = join(keys.folder, 'rotated.json')
    writeFileSync(jwks, former.keySet)
    const { call } = await serve({ jwt: former.optionsFor(jwks) })
    const statusOf = async (issuer: typeof former) => {
      const token = await issuer.sign({ leasehold: ['*:read'] })
      return (await call('GET', '/v1/locks', undefined, bearer(token))).status
    }
    expect([await statusOf(former), await statusOf(latter)]).toEqual([200, 401])
    writeFileSync(jwks, '{"keys":')
    await sleep(POLL_MS)
    expect([await statusOf(former), await statusOf(latter)]).toEqual([200, 401])
    writeFileSync(jwks, latter.keySet)
    await vi.waitFor(async () => expect([await statusOf(former), await statusOf(latter)]).toEqual([401, 200]), 10_000)
  })

  test('fail with unreachable, not unauthenticated, when the key set cannot be fetched', async () => {
    const issuer = await createIssuer()
    let status = 500
    const server = createServer((_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(issuer.keySet)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const jwks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
    const { call } = await serve({ jwt: issuer.optionsFor(jwks) })
    const token = await issuer.sign({ leasehold: ['*:acquire'] })
    expect(await call('POST', '/v1/acquire', { name: 'a' }, bearer(token))).toMatchObject({
      status: 503,
      body: { code: 'unreachable' },
    })
    status = 200
    expect((await call('POST', '/v1/acquire', { name: 'a' }, bearer(token))).status).toBe(200)
    server.close()
  })
})
