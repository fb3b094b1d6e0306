import { describe, expect, it } from 'vitest'
import { isLoopback, originProblem, originsOf } from '../../src/security/origin.js'
import { rawSocket, readAll, serve } from '../support/harness.js'

async function send(port: number, headers: string, path = '/v1/locks'): Promise<string> {
  const socket = await rawSocket(port)
  socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\nconnection: close\r\n\r\n`)
  return readAll(socket)
}

describe('requests of browsers', () => {
  it('from other origins are rejected', async () => {
    const { server, get } = await serve()
    const host = `127.0.0.1:${server.port}`
    expect(await send(server.port, `host: ${host}\r\norigin: https://evil.example`)).toMatch(
      / 403 [\s\S]*"code":"forbidden"/,
    )
    expect(await send(server.port, `host: ${host}\r\norigin: null`)).toMatch(/ 403 /)
    expect(await send(server.port, `host: ${host}\r\norigin: http://127.0.0.1:1`)).toMatch(/ 403 /)
    expect(await send(server.port, `host: ${host}\r\nsec-fetch-site: cross-site`)).toMatch(/ 403 /)
    expect(await send(server.port, `host: ${host}\r\norigin: http://${host}`)).toMatch(/ 200 /)
    expect(await send(server.port, `host: ${host}\r\nsec-fetch-site: same-origin`)).toMatch(/ 200 /)
    const socket = await rawSocket(server.port)
    const body = '{"name":"a"}'
    socket.write(
      `POST /v1/acquire HTTP/1.1\r\nhost: ${host}\r\norigin: https://evil.example\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    )
    expect(await readAll(socket)).toMatch(/ 403 /)
    expect((await get('/v1/locks')).body.held).toEqual([])
  })

  it('under a foreign name that resolves to this machine are rejected', async () => {
    const { server } = await serve()
    expect(
      await send(server.port, `host: evil.example:${server.port}\r\norigin: http://evil.example:${server.port}`),
    ).toMatch(/ 403 /)
    expect(await send(server.port, 'host: evil.example')).toMatch(/ 403 /)
    expect(await send(server.port, `host: localhost:${server.port}`)).toMatch(/ 200 /)
    expect(await send(server.port, 'host: [::1]:4100')).toMatch(/ 200 /)
  })

  it('under a foreign name are rejected on every address without credentials, also for metrics', async () => {
    const { server } = await serve({ listen: { host: '0.0.0.0', port: 0 }, allowAnonymous: true })
    for (const path of ['/v1/locks', '/metrics']) {
      expect(await send(server.port, `host: evil.example:${server.port}`, path)).toMatch(/ 403 /)
      expect(await send(server.port, 'host: 127.0.0.1\r\norigin: https://evil.example', path)).toMatch(/ 403 /)
      expect(await send(server.port, 'host: 10.1.2.3:4100', path)).toMatch(/ 200 /)
      expect(await send(server.port, 'host: leasehold:4100', path)).toMatch(/ 200 /)
    }
  })

  it('from other origins cannot open a stream', async () => {
    const { server } = await serve()
    const upgrade = 'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='
    const socket = await rawSocket(server.port)
    socket.write(
      `GET /v1/stream HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: https://evil.example\r\nconnection: upgrade\r\n${upgrade}\r\n\r\n`,
    )
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 403 /)
    const other = await rawSocket(server.port)
    other.write(`GET /v2/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n${upgrade}\r\n\r\n`)
    expect(await readAll(other)).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('from an allowed origin are accepted', async () => {
    const { server } = await serve({ allowedOrigins: ['https://tools.example'] })
    const answer = await send(server.port, 'host: 127.0.0.1\r\norigin: https://tools.example')
    expect(answer).toMatch(/ 200 [\s\S]*access-control-allow-origin: https:\/\/tools.example/)
    const socket = await rawSocket(server.port)
    const preflight = 'origin: https://tools.example\r\naccess-control-request-method: POST\r\nconnection: close'
    socket.write(`OPTIONS /v1/acquire HTTP/1.1\r\nhost: 127.0.0.1\r\n${preflight}\r\n\r\n`)
    expect(await readAll(socket)).toMatch(/ 204 [\s\S]*access-control-allow-methods: GET, POST/)
    expect(await send(server.port, 'host: 127.0.0.1\r\norigin: https://other.example')).toMatch(/ 403 /)
  })
})

it('originProblem accepts pages of current members', () => {
  let urls = ['http://10.0.0.1:4100', 'https://n2.example/', '']
  const rules = { hosts: 'any' as const, allowed: [], advertisedHost: '', members: () => originsOf(urls) }
  const ask = (origin: string) => originProblem({ host: 'n3.example', origin, fetchSite: 'cross-site' }, rules)
  expect(ask('http://10.0.0.1:4100')).toBeUndefined()
  expect(ask('https://n2.example')).toBeUndefined()
  expect(ask('http://n2.example')).toBeDefined()
  expect(ask('http://10.0.0.1')).toBeDefined()
  expect(ask('null')).toBeDefined()
  urls = ['http://10.0.0.1:4100']
  expect(ask('https://n2.example')).toBeDefined()
})

it('originProblem accepts the names of an anonymous service, and no foreign one', () => {
  const members = () => originsOf(['http://n2.example:4100'])
  const rules = { hosts: 'anonymous' as const, allowed: [], advertisedHost: 'locks.test:4100', members }
  const ask = (host: string) => originProblem({ host, origin: undefined, fetchSite: undefined }, rules)
  for (const host of ['locks.test:80', 'N2.example:4100', 'n3', '10.0.0.1', '[fe80::1]:4100', 'localhost'])
    expect(ask(host)).toBeUndefined()
  for (const host of ['evil.example', 'n2.example.evil.example', 'evil.', '[evil.example]', ':4100'])
    expect(ask(host)).toBeDefined()
})

it('originProblem checks host, origin and fetch site', () => {
  const rules = { hosts: 'loopback' as const, allowed: [], advertisedHost: 'locks.test:4100' }
  const ask = (host: string | undefined, origin?: string, fetchSite?: string) =>
    originProblem({ host, origin, fetchSite }, rules)
  expect(ask('localhost:4100')).toBeUndefined()
  expect(ask('app.localhost')).toBeUndefined()
  expect(ask('LOCKS.test:4100')).toBeUndefined()
  expect(ask('127.0.0.1:4100', 'http://127.0.0.1:4100')).toBeUndefined()
  expect(ask('[::1]:4100', 'http://[::1]:4100')).toBeUndefined()
  expect(ask(undefined)).toBeDefined()
  expect(ask('127.0.0.1.evil.example')).toBeDefined()
  expect(ask('localhost.evil.example')).toBeDefined()
  expect(ask('127.0.0.1', 'file://')).toBeDefined()
  expect(ask('127.0.0.1', 'not a url')).toBeDefined()
  expect(ask('127.0.0.1', undefined, 'same-site')).toBeDefined()
  expect(ask('127.0.0.1', undefined, 'none')).toBeUndefined()
  expect(['127.0.0.1', '127.9.9.9', '::1', 'localhost'].every(isLoopback)).toBe(true)
  expect(['0.0.0.0', '::', '10.0.0.1', '127.evil.example', 'example'].some(isLoopback)).toBe(false)
})
