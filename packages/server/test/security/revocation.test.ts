import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ClientMessage,
  type Command,
  encodeClientMessages,
  decodeServerMessages,
  STREAM_VERSION,
} from '@leasehold/core'
import { createKey, revokeKey } from '@leasehold/server'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import WebSocket from 'ws'

import { ANONYMOUS, clientOf } from '../../src/security/principal.js'
import { type Harness, serve, until } from '../support/harness.js'

let folder: string
let keys: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-going-on-'))
  keys = join(folder, 'keys.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

function key(...rules: string[]) {
  return createKey(keys, { name: 'test', rules }, new Date())
}

const bearer = (text: string) => ({ 'content-type': 'application/json', authorization: `Bearer ${text}` })

async function stream(url: string, apiKey: string, ...more: ClientMessage[]) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
  const got: ReturnType<typeof decodeServerMessages>[number][] = []
  socket.on('message', (data: Buffer) => got.push(...decodeServerMessages(data)))
  await new Promise((resolve) => socket.once('open', resolve))
  socket.send(encodeClientMessages([{ kind: 'hello', version: STREAM_VERSION, apiKey, client: '', epoch: 0 }, ...more]))
  await until(() => got.length > 0)
  return { socket, got }
}

const hex = (n: number) => n.toString(16).padStart(32, '0')

function opening(n: number): ClientMessage {
  const command: Command = {
    kind: 'openSession',
    nonce: hex(n),
    secret: hex(0),
    ttlMs: 30_000 as never,
    client: 'c',
    local: false,
  }
  return { kind: 'command', correlation: n, command }
}

/** Takes and gives back a lock in the name of somebody whose key is good. */
async function move({ call }: Harness, good: string, name: string): Promise<void> {
  const { body } = await call('POST', '/v1/acquire', { name }, bearer(good))
  await call('POST', '/v1/release', { hold: body.hold }, bearer(good))
}

describe('what goes on when its key is revoked', () => {
  test('a watch of a stream sees nothing more, and ends by the reason', async () => {
    const [mine, other] = [key('billing:read'), key('*:acquire,read')]
    const harness = await serve({ keys })
    const { socket, got } = await stream(harness.url, mine.text, { kind: 'watch', correlation: 5, prefix: 'billing' })
    await move(harness, other.text, 'billing/1')
    await until(() => got.filter((one) => one.kind === 'events').length >= 2)
    revokeKey(keys, mine.entry.id)
    await until(
      async () => (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine.text))).status === 401,
    )
    const before = got.length
    await move(harness, other.text, 'billing/2')
    await until(() => got.length > before)
    await move(harness, other.text, 'billing/3')
    expect(got.slice(before)).toEqual([
      expect.objectContaining({
        kind: 'error',
        correlation: 5,
        refused: expect.objectContaining({ code: 'unauthenticated' }),
      }),
    ])
    socket.terminate()
  })

  test('an event stream sees nothing more, and ends by the reason', async () => {
    const [mine, other] = [key('billing:read'), key('*:acquire,read')]
    const harness = await serve({ keys })
    const answer = await fetch(`${harness.url}/v1/watch?prefix=billing`, { headers: bearer(mine.text) })
    revokeKey(keys, mine.entry.id)
    await until(
      async () => (await harness.call('GET', '/v1/locks?prefix=billing', undefined, bearer(mine.text))).status === 401,
    )
    await move(harness, other.text, 'billing/2')
    const text = await answer.text()
    expect(text).toContain('event: unauthenticated')
    expect(text).not.toContain('billing/2')
  })

  test('an acquire that waits over HTTP is refused, and its session ends', async () => {
    const [mine, other] = [key('billing:acquire'), key('*:acquire,read')]
    const harness = await serve({ keys })
    const { body } = await harness.call('POST', '/v1/acquire', { name: 'billing/1' }, bearer(other.text))
    const waiting = harness.call(
      'POST',
      '/v1/acquire',
      { name: 'billing/1', wait: '30s', ttl: '5s' },
      bearer(mine.text),
    )
    await until(() => [...harness.member.state.machine.waiters.values()].length === 1)
    revokeKey(keys, mine.entry.id)
    expect(await waiting).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    await until(() => harness.member.state.machine.sessions.size === 1)
    await harness.call('POST', '/v1/release', { hold: body.hold }, bearer(other.text))
    expect([...harness.member.state.machine.holds.values()]).toEqual([])
  })
})

describe('a limit', () => {
  test('of sessions counts openings that are under way: one frame of many is no way around it', async () => {
    const { text } = key('*:acquire,read')
    const harness = await serve({ keys, clientLimits: { sessions: 3 } })
    const opens = Array.from({ length: 20 }, (_, i) => opening(i + 1))
    const { socket, got } = await stream(harness.url, text, ...opens)
    await until(() => got.length === 21)
    expect(harness.member.state.machine.sessions.size).toBe(3)
    expect(got.filter((one) => one.kind === 'error' && one.refused.code === 'limit')).toHaveLength(17)
    socket.terminate()
    expect((await harness.call('POST', '/v1/sessions', { ttl: '30s' }, bearer(text))).status).toBe(429)
  })

  test('of sessions counts those whose caller has gone before the answer', async () => {
    const { text } = key('*:acquire,read')
    const harness = await serve({ keys, clientLimits: { sessions: 3 } })
    harness.member.frozen = true
    const { socket } = await stream(harness.url, text, opening(1), opening(2), opening(3))
    await until(() => harness.member.submitted.length === 3)
    socket.terminate()
    await new Promise((resolve) => setTimeout(resolve, 50))
    harness.member.thaw()
    await until(() => harness.member.state.machine.sessions.size === 3)
    expect((await harness.call('POST', '/v1/sessions', { ttl: '30s' }, bearer(text))).status).toBe(429)
  })

  test('of waiting acquires counts those that are under way', async () => {
    const { text } = key('*:acquire,read')
    const harness = await serve({ keys, clientLimits: { waiters: 2 } })
    await harness.call('POST', '/v1/acquire', { name: 'a' }, bearer(text))
    const { socket, got } = await stream(harness.url, text, opening(1))
    await until(() => got.length === 2)
    const opened = got[1] as unknown as { result: { session: never } }
    const acquires = Array.from(
      { length: 10 },
      (_, i): ClientMessage => ({
        kind: 'command',
        correlation: 10 + i,
        command: {
          kind: 'acquire',
          session: opened.result.session,
          request: i + 1,
          ack: { lowest: 1, also: [] },
          locks: [{ name: 'a', mode: 'exclusive' }],
          waitMs: 5000 as never,
          lockDelayMs: 0 as never,
          persistent: false,
          portable: false,
          data: new Uint8Array(0),
        },
      }),
    )
    socket.send(encodeClientMessages(acquires))
    await until(() => got.length === 12)
    expect([...harness.member.state.machine.waiters.values()]).toHaveLength(2)
    socket.terminate()
  })

  test('counts addresses where nobody is asked, and of IPv6 networks', () => {
    const of = (remote: string) => clientOf(ANONYMOUS, remote)
    expect(of('10.0.0.1:4000')).toBe(of('::ffff:10.0.0.1:5000'))
    expect(of('10.0.0.1:4000')).not.toBe(of('10.0.0.2:4000'))
    expect(of('2001:db8:1:2::7:4000')).toBe(of('2001:db8:1:2:aaaa:bbbb:cccc:dddd:5000'))
    expect(of('2001:db8:1:2::7:4000')).not.toBe(of('2001:db8:1:3::7:4000'))
  })

  test('of sessions leaves other addresses alone where nobody is asked', async () => {
    const harness = await serve({
      listen: { host: '0.0.0.0', port: 0 },
      allowAnonymous: true,
      clientLimits: { sessions: 1 },
    })
    const [, one, other] = [0, '127.0.0.1', '127.0.0.2'].map((host) => `http://${host}:${harness.server.port}`)
    const open = async (url: string | undefined, from: string) => {
      const { request } = await import('node:http')
      return await new Promise<number>((resolve, reject) => {
        const headers = { 'content-type': 'application/json' }
        const asking = request(`${url}/v1/sessions`, { method: 'POST', headers, localAddress: from }, (answer) => {
          answer.resume()
          resolve(answer.statusCode ?? 0)
        })
        asking.on('error', reject)
        asking.end('{"ttl":"30s"}')
      })
    }
    expect([await open(one, '127.0.0.1'), await open(one, '127.0.0.1'), await open(other, '127.0.0.2')]).toEqual([
      200, 429, 200,
    ])
  })
})

describe('web tokens', () => {
  test('are not called wrong when the key set cannot be fetched', async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }
    let status = 500
    const place = createServer((_, answer) => {
      answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }))
    })
    await new Promise<void>((resolve) => place.listen(0, '127.0.0.1', resolve))
    const jwks = `http://127.0.0.1:${(place.address() as AddressInfo).port}/jwks`
    const { call } = await serve({ jwt: { jwks, issuer: 'https://id.example', audience: 'leasehold' } })
    const token = await new SignJWT({ leasehold: ['*:acquire'] })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setSubject('worker')
      .setIssuer('https://id.example')
      .setAudience('leasehold')
      .setExpirationTime('1h')
      .sign(privateKey)
    expect(await call('POST', '/v1/acquire', { name: 'a' }, bearer(token))).toMatchObject({
      status: 503,
      body: { code: 'unreachable' },
    })
    status = 200
    expect((await call('POST', '/v1/acquire', { name: 'a' }, bearer(token))).status).toBe(200)
    place.close()
  })
})
