import { describe, expect, it } from 'vitest'
import { createServer } from '@leasehold/server'
import { call, rawSocket, readAll, serve, until } from './support/harness.js'
import { STOP_TIMEOUT_MS } from '../src/limits.js'
import { LocalMember } from './support/local-member.js'

describe('close', () => {
  it('rejects waiting acquires, and leaves neither waiters nor grants behind', async () => {
    const { post, get, server, member } = await serve()
    await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const { session } = (await post('/v1/sessions', { ttl: '1m' })).body
    const waiting = [
      post('/v1/acquire', { name: 'a', wait: '30s' }),
      post('/v1/acquire', { name: 'a', wait: '30s', session }),
      post('/v1/acquire', { name: 'a', wait: '30s', session, request: 9 }),
    ]
    await until(async () => (await get('/v1/locks')).body.pending.length === 3)
    const started = performance.now()
    await server.close()
    // Without these responses, close would wait until its time limit.
    expect(performance.now() - started).toBeLessThan(STOP_TIMEOUT_MS)
    for (const answer of await Promise.all(waiting)) {
      expect(answer).toMatchObject({ status: 503, body: { code: 'unreachable', retryable: true } })
    }
    expect(member.state.machine.waiters.size).toBe(0)
    expect(member.state.machine.holds.size).toBe(1)
  })

  it('keeps every acknowledged command, and reports unreachable only for commands without effect', async () => {
    const { url, server, member } = await serve()
    const answers = Array.from({ length: 40 }, (_, i) =>
      call(url, 'POST', '/v1/acquire', { name: `n${i}` }).catch(() => undefined),
    )
    await until(() => member.submitted.length > 20)
    await server.close()
    const held = new Set(member.state.machine.holds.keys())
    for (const answer of await Promise.all(answers)) {
      if (answer?.status === 200) expect(held.has(Number(BigInt(answer.body.id) & 0xffffffffffffn) as never)).toBe(true)
      else if (answer !== undefined) expect(answer.body.code).toBe('unreachable')
    }
  })

  it('stops within its time limit when connections stay open and the member does not answer', async () => {
    const { url, server, member } = await serve()
    const idle = await rawSocket(server.port)
    idle.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
    const slow = await rawSocket(server.port)
    slow.write(
      'POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"na',
    )
    member.frozen = true
    const stuck = call(url, 'POST', '/v1/sessions', {}).catch(() => undefined)
    const watch = await fetch(`${url}/v1/watch`)
    await until(() => member.submitted.length > 0)
    const started = performance.now()
    await server.close()
    expect(performance.now() - started).toBeLessThan(20_000)
    await Promise.all([readAll(idle), readAll(slow), stuck, watch.text()])
    await expect(call(url, 'GET', '/healthz')).rejects.toThrow()
  })

  it('can be called twice, and leaves the member running', async () => {
    const { server, member } = await serve()
    await Promise.all([server.close(), server.close()])
    const again = await serve({ member })
    expect((await again.post('/v1/acquire', { name: 'a' })).status).toBe(200)
  })
})

describe('createServer', () => {
  const member = new LocalMember()

  it('rejects a port in use, with a hint', async () => {
    const { server } = await serve()
    await expect(createServer({ member, listen: { port: server.port } })).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringMatching(/running/),
    })
  })

  it('rejects an address that other machines can reach without authentication, unless anonymous access is allowed', async () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1']) {
      await expect(createServer({ member, listen: { host, port: 0 } })).rejects.toMatchObject({
        code: 'forbidden',
        hint: expect.stringContaining('--allow-anonymous'),
      })
    }
    const warnings: string[] = []
    const logger = { info() {}, warn: (text: string) => warnings.push(text), error() {} }
    const open = await createServer({ member, listen: { host: '0.0.0.0', port: 0 }, allowAnonymous: true, logger })
    expect(warnings).toHaveLength(1)
    expect((await call(`http://127.0.0.1:${open.port}`, 'GET', '/v1/cluster')).status).toBe(200)
    await open.close()
  })

  it('rejects wrong options', async () => {
    for (const listen of [
      { port: -1 },
      { port: 70_000 },
      { port: 1.5 },
      { host: '' },
      { host: 'no such host.invalid', port: 0 },
    ]) {
      await expect(createServer({ member, listen, allowAnonymous: true })).rejects.toMatchObject({ code: 'invalid' })
    }
    for (const advertiseUrl of ['somewhere', 'ftp://host:1']) {
      await expect(createServer({ member, listen: { port: 0 }, advertiseUrl })).rejects.toMatchObject({
        code: 'invalid',
      })
    }
  })

  it('reports its URL', async () => {
    const plain = await serve()
    expect(plain.server.url).toBe(`http://127.0.0.1:${plain.server.port}`)
    const advertised = await serve({ advertiseUrl: 'http://locks.example:4100/' })
    expect(advertised.server.url).toBe('http://locks.example:4100')
  })
})
