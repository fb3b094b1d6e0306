import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeClientMessages, STREAM_VERSION, decodeServerMessages } from '@leasehold/core'
import { createKey, readKeys, revokeKey } from '@leasehold/server'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import { serve, until } from '../support/harness.js'

let folder: string
let keys: string
let audit: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-access-'))
  keys = join(folder, 'keys.json')
  audit = join(folder, 'audit.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true }))

function key(...rules: string[]): string {
  return createKey(keys, { name: 'test', rules }, new Date()).text
}

function lines(): Record<string, unknown>[] {
  return readFileSync(audit, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

async function service(more: Parameters<typeof serve>[0] = {}) {
  const harness = await serve({ keys, audit, ...more })
  const as = (text: string) => (method: string, path: string, body?: unknown) =>
    harness.call(method, path, body, {
      'content-type': 'application/json',
      ...(text === '' ? {} : { authorization: `Bearer ${text}` }),
    })
  return { ...harness, as }
}

/** The first answer to `hello` and the messages after it. */
async function stream(url: string, apiKey: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  const got: ReturnType<typeof decodeServerMessages>[number][] = []
  socket.on('message', (data: Buffer) => got.push(...decodeServerMessages(data)))
  await new Promise((resolve) => socket.once('open', resolve))
  socket.send(encodeClientMessages([{ kind: 'hello', version: STREAM_VERSION, apiKey, client: '', epoch: 0 }]))
  await until(() => got.length > 0)
  return { socket, got }
}

describe('a service with keys', () => {
  test('keeps out who has none, a wrong one, or a rule that does not cover the name: no effect, and audited', async () => {
    const billing = key('billing:acquire,read')
    const { as, member } = await service()
    const wrong = `${billing.slice(0, -1)}${billing.endsWith('A') ? 'B' : 'A'}`
    expect(await as('')('POST', '/v1/acquire', { name: 'billing/1' })).toMatchObject({ status: 401 })
    expect(await as(wrong)('POST', '/v1/acquire', { name: 'billing/1' })).toMatchObject({ status: 401 })
    expect(await as(billing)('POST', '/v1/acquire', { name: 'payroll/1' })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    })
    expect(await as(billing)('POST', '/v1/steal', { name: 'billing/1', reason: 'x' })).toMatchObject({ status: 403 })
    expect(await as(billing)('GET', '/v1/locks')).toMatchObject({ status: 403 })
    expect(member.submitted).toEqual([])
    const refused = lines()
    expect(refused.map(({ event, code }) => [event, code])).toEqual([
      ['refused', 'unauthenticated'],
      ['refused', 'unauthenticated'],
      ['refused', 'forbidden'],
      ['refused', 'forbidden'],
      ['refused', 'forbidden'],
    ])
    expect(refused[2]).toMatchObject({
      verb: 'acquire',
      names: ['payroll/1'],
      principal: expect.stringMatching(/^key:/),
    })
    expect(readFileSync(audit, 'utf8')).not.toContain(billing.slice(-43))
    expect((await as(billing)('POST', '/v1/acquire', { name: 'billing/1' })).status).toBe(200)
  })

  test('tells in the audit who took, gave back and stole what', async () => {
    const all = key('*:acquire,read,steal')
    const { as } = await service()
    const { body } = await as(all)('POST', '/v1/acquire', { name: 'a', client: 'worker 1' })
    await as(all)('POST', '/v1/release', { hold: body.hold })
    await as(all)('POST', '/v1/acquire', { name: 'b' })
    await as(all)('POST', '/v1/steal', { name: 'b', reason: 'stuck', actor: 'ann' })
    const id = readKeys(keys)[0]?.id
    const told = lines().map(({ event, names, principal, actor, why }) => ({ event, names, principal, actor, why }))
    expect(told).toContainEqual({
      event: 'acquired',
      names: ['a'],
      principal: `key:${id}`,
      actor: undefined,
      why: undefined,
    })
    expect(told).toContainEqual({
      event: 'released',
      names: ['a'],
      principal: undefined,
      actor: undefined,
      why: undefined,
    })
    expect(told).toContainEqual({ event: 'stolen', names: ['b'], principal: undefined, actor: 'ann', why: 'stuck' })
  })

  test('looks at a revoked key again within seconds, also on an open stream, and lets its holds be given back', async () => {
    const text = key('*:acquire,read')
    key('*:read')
    const { as, url, member } = await service()
    const { body } = await as(text)('POST', '/v1/acquire', { name: 'a', ttl: '60s' })
    const { socket, got } = await stream(url, text)
    expect(got[0]).toMatchObject({ kind: 'welcome' })
    revokeKey(keys, (readKeys(keys)[0] as { id: string }).id)
    await until(async () => (await as(text)('GET', '/v1/locks')).status === 401)
    socket.send(encodeClientMessages([{ kind: 'get', correlation: 1, key: 'x', stale: true }]))
    await until(() => got.length > 1)
    expect(got[1]).toMatchObject({
      kind: 'error',
      refused: { code: 'unauthenticated', message: 'this key was revoked' },
    })
    const before = member.submitted.length
    expect((await as(text)('POST', '/v1/renew', { hold: body.hold })).status).toBe(401)
    expect(member.submitted).toHaveLength(before)
    expect((await as(text)('POST', '/v1/release', { hold: body.hold })).status).toBe(200)
    socket.terminate()
  })

  test('keeps its keys when the file becomes unreadable', async () => {
    const text = key('*:read')
    const { as } = await service()
    writeFileSync(keys, 'not JSON')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await as(text)('GET', '/v1/locks')).status).toBe(200)
  })

  test('refuses a stream by the code of its error', async () => {
    key('*:read')
    const { url } = await service()
    for (const wrong of ['', 'nonsense']) {
      const { socket, got } = await stream(url, wrong)
      expect(got[0]).toMatchObject({ kind: 'error', correlation: 0, refused: { code: 'unauthenticated' } })
      await until(() => socket.readyState === WebSocket.CLOSED)
    }
  })

  test('lets a key steal below its prefix by the id of a hold', async () => {
    const [other, ops] = [key('*:acquire,read'), key('billing:steal')]
    const { as, post } = await service()
    const ids = new Map<string, string>()
    for (const name of ['billing/1', 'payroll/1']) {
      ids.set(name, (await as(other)('POST', '/v1/acquire', { name })).body.id as string)
    }
    expect((await as(ops)('POST', '/v1/steal', { hold: ids.get('payroll/1'), reason: 'x' })).status).toBe(403)
    expect((await as(ops)('POST', '/v1/steal', { hold: ids.get('billing/1'), reason: 'x' })).status).toBe(200)
    expect((await post('/v1/steal', { hold: ids.get('payroll/1'), reason: 'x' })).status).toBe(401)
  })
})

describe('limits of one client', () => {
  test('count requests, and leave renewals and releases alone', async () => {
    const text = key('*:acquire,read')
    const { as } = await service({ clientLimits: { requestsPerSecond: 2 } })
    const { body } = await as(text)('POST', '/v1/acquire', { name: 'a' })
    const codes: number[] = []
    // Two a second are given back meanwhile: so many at once are more, however slow this machine is.
    for (let i = 0; i < 200 && !codes.includes(429); i++) codes.push((await as(text)('GET', '/v1/locks')).status)
    expect(codes).toContain(429)
    expect((await as(text)('POST', '/v1/renew', { hold: body.hold })).status).toBe(200)
    expect((await as(text)('POST', '/v1/release', { hold: body.hold })).status).toBe(200)
  })

  test('count sessions and waiting acquires', async () => {
    const text = key('*:acquire,read')
    const { as } = await service({ clientLimits: { sessions: 3, waiters: 1 } })
    const ask = as(text)
    const { body } = await ask('POST', '/v1/acquire', { name: 'a', ttl: '60s' })
    const waiting = ask('POST', '/v1/acquire', { name: 'a', wait: '50s' })
    await until(async () => (await ask('GET', '/v1/locks')).body.pending.length === 1)
    expect(await ask('POST', '/v1/acquire', { name: 'a', wait: '2s' })).toMatchObject({
      status: 429,
      body: { code: 'limit', detail: expect.stringContaining('1 waiting acquires') },
    })
    await ask('POST', '/v1/sessions', { ttl: '30s' })
    expect(await ask('POST', '/v1/sessions', { ttl: '30s' })).toMatchObject({ status: 429 })
    await ask('POST', '/v1/release', { hold: body.hold })
    expect((await waiting).status).toBe(200)
  })
})

describe('web tokens', () => {
  async function issuer() {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwks = join(folder, 'jwks.json')
    writeFileSync(jwks, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }] }))
    const sign = (
      claims: JWTPayload,
      options: { exp?: string; iss?: string; aud?: string; signer?: typeof privateKey } = {},
    ) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
        .setSubject('worker')
        .setIssuer(options.iss ?? 'https://id.example')
        .setAudience(options.aud ?? 'leasehold')
        .setExpirationTime(options.exp ?? '1h')
        .sign(options.signer ?? privateKey)
    return { jwt: { jwks, issuer: 'https://id.example', audience: 'leasehold' }, sign }
  }

  test('are good for what their claim lists, until they end', async () => {
    const { jwt, sign } = await issuer()
    const harness = await serve({ jwt, audit })
    const ask = (text: string, name: string) =>
      harness.call(
        'POST',
        '/v1/acquire',
        { name },
        { 'content-type': 'application/json', authorization: `Bearer ${text}` },
      )
    const good = await sign({ leasehold: ['billing:acquire'] })
    expect((await ask(good, 'billing/1')).status).toBe(200)
    expect((await ask(good, 'other')).status).toBe(403)
    const stranger = (await generateKeyPair('ES256')).privateKey
    for (const bad of [
      await sign({ leasehold: ['billing:acquire'] }, { exp: '1 hour ago' }),
      await sign({ leasehold: ['billing:acquire'] }, { iss: 'https://evil.example' }),
      await sign({ leasehold: ['billing:acquire'] }, { aud: 'other' }),
      await sign({ leasehold: ['billing:acquire'] }, { signer: stranger }),
      await sign({}),
      await sign({ leasehold: 'billing:acquire' }),
      await sign({ leasehold: ['billing:write'] }),
      `${good.split('.').slice(0, 2).join('.')}.`,
    ]) {
      expect((await ask(bad, 'billing/1')).status).toBe(401)
    }
  })
})
