import { type ClientMessage, type Command, encodeClientMessages } from '@leasehold/core'
import { describe, expect, test } from 'vitest'
import { serve, until } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { openStream } from '../support/raw-stream.js'

const keys = useKeyFile()

const hex = (n: number) => n.toString(16).padStart(32, '0')

function openSession(n: number): ClientMessage {
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

describe('ClientQuotas', () => {
  test('counts pending opens, so that one frame cannot exceed the limit of sessions', async () => {
    const { text } = keys.create('*:acquire,read')
    const harness = await serve({ keys: keys.file, clientLimits: { sessions: 3 } })
    const opens = Array.from({ length: 20 }, (_, i) => openSession(i + 1))
    const { socket, received } = await openStream(harness.url, text, ...opens)
    await until(() => received.length === 21)
    expect(harness.member.state.machine.sessions.size).toBe(3)
    expect(received.filter((one) => one.kind === 'error' && one.refused.code === 'limit')).toHaveLength(17)
    socket.terminate()
    expect((await harness.call('POST', '/v1/sessions', { ttl: '30s' }, bearer(text))).status).toBe(429)
  })

  test('counts sessions whose caller disconnected before the response', async () => {
    const { text } = keys.create('*:acquire,read')
    const harness = await serve({ keys: keys.file, clientLimits: { sessions: 3 } })
    harness.member.frozen = true
    const { socket } = await openStream(harness.url, text, openSession(1), openSession(2), openSession(3))
    await until(() => harness.member.submitted.length === 3)
    socket.terminate()
    await new Promise((resolve) => setTimeout(resolve, 50))
    harness.member.thaw()
    await until(() => harness.member.state.machine.sessions.size === 3)
    expect((await harness.call('POST', '/v1/sessions', { ttl: '30s' }, bearer(text))).status).toBe(429)
  })

  test('counts pending acquires for the limit of waiters', async () => {
    const { text } = keys.create('*:acquire,read')
    const harness = await serve({ keys: keys.file, clientLimits: { waiters: 2 } })
    await harness.call('POST', '/v1/acquire', { name: 'a' }, bearer(text))
    const { socket, received } = await openStream(harness.url, text, openSession(1))
    await until(() => received.length === 2)
    const opened = received[1] as unknown as { result: { session: never } }
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
    await until(() => received.length === 12)
    expect([...harness.member.state.machine.waiters.values()]).toHaveLength(2)
    socket.terminate()
  })

  test('counts anonymous callers per address', async () => {
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

  test('limits sessions and waiting acquires over HTTP', async () => {
    const { text } = keys.create('*:acquire,read')
    const harness = await serve({ keys: keys.file, clientLimits: { sessions: 3, waiters: 1 } })
    const ask = (method: string, path: string, body?: unknown) => harness.call(method, path, body, bearer(text))
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
