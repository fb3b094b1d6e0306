import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/http/app.js'
import { call, rawSocket, readAll, serve } from '../support/harness.js'

describe('a wrong request gets a typed problem', () => {
  const cases: readonly (readonly [string, string, string, unknown, number, RegExp])[] = [
    ['no name', 'POST', '/v1/acquire', {}, 400, /either name or locks/],
    ['an empty name', 'POST', '/v1/acquire', { name: '' }, 400, /at least one character/],
    ['a control character', 'POST', '/v1/acquire', { name: 'a\nb' }, 400, /control/],
    ['a lone surrogate', 'POST', '/v1/acquire', { name: 'a\ud800' }, 400, /surrogate/],
    ['a long name', 'POST', '/v1/acquire', { name: 'é'.repeat(257) }, 400, /512 bytes/],
    ['a name that is no text', 'POST', '/v1/acquire', { name: 7 }, 400, /string/],
    ['a lock named twice', 'POST', '/v1/acquire', { locks: ['a', 'a'] }, 400, /twice/],
    ['no locks', 'POST', '/v1/acquire', { locks: [] }, 400, /locks/],
    ['name and locks', 'POST', '/v1/acquire', { name: 'a', locks: ['b'] }, 400, /either name or locks/],
    ['a small ttl', 'POST', '/v1/acquire', { name: 'a', ttl: 30 }, 400, /30 is ambiguous/],
    ['a wrong ttl', 'POST', '/v1/acquire', { name: 'a', ttl: '10 parsecs' }, 400, /not a duration/],
    ['a negative ttl', 'POST', '/v1/acquire', { name: 'a', ttl: -1 }, 400, /whole number/],
    ['a ttl below the limit', 'POST', '/v1/acquire', { name: 'a', ttl: '10ms' }, 400, /ttl/i],
    ['a small wait', 'POST', '/v1/acquire', { name: 'a', wait: 5 }, 400, /ambiguous/],
    ['a wait without meaning', 'POST', '/v1/acquire', { name: 'a', wait: null }, 400, /wait/],
    ['an unknown mode', 'POST', '/v1/acquire', { name: 'a', mode: 'excl' }, 400, /mode is/],
    ['no permits', 'POST', '/v1/acquire', { name: 'a', mode: { permits: 0 } }, 400, /mode|permits/],
    ['half a permit', 'POST', '/v1/acquire', { name: 'a', permits: 1.5 }, 400, /permits/],
    ['mode against permits', 'POST', '/v1/acquire', { name: 'a', mode: 'shared', permits: 3 }, 400, /contradict/],
    ['a misspelt field', 'POST', '/v1/acquire', { name: 'a', tll: '10s' }, 400, /tll/],
    ['a long lock delay', 'POST', '/v1/acquire', { name: 'a', lockDelay: '2m' }, 400, /lock delay/],
    ['a number without a session', 'POST', '/v1/acquire', { name: 'a', request: 1 }, 400, /session/],
    ['a wrong session', 'POST', '/v1/acquire', { name: 'a', session: 'lhs_x' }, 400, /not a session handle/],
    ['a session that is a number', 'POST', '/v1/acquire', { name: 'a', session: 12 }, 400, /handle/],
    ['a broken nonce', 'POST', '/v1/sessions', { nonce: 'zz' }, 400, /nonce/],
    ['a long client', 'POST', '/v1/sessions', { client: 'ü'.repeat(200) }, 400, /256 bytes/],
    ['nothing to renew', 'POST', '/v1/renew', {}, 400, /hold or a session/],
    ['a wrong hold', 'POST', '/v1/release', { hold: 'abc' }, 400, /not a hold handle/],
    ['a hold that is a number', 'POST', '/v1/release', { hold: 281474976710657 }, 400, /handle/],
    ['a token as a JSON number', 'POST', '/v1/steal', { hold: 281474976710657, reason: 'x' }, 400, /decimal string/],
    ['a steal without a reason', 'POST', '/v1/steal', { name: 'a' }, 400, /reason/],
    ['a steal of nothing', 'POST', '/v1/steal', { reason: 'x' }, 400, /lock or a hold/],
    ['a token of zero', 'POST', '/v1/steal', { hold: '0', reason: 'x' }, 400, /between 1/],
    ['an unknown session id', 'POST', '/v1/sessions/end', { session: '281474976799999' }, 410, /session/],
    ['a version as a JSON number', 'PUT', '/v1/registers?key=k', { value: 1, ifVersion: 3 }, 400, /decimal string/],
    ['a put without a value', 'PUT', '/v1/registers?key=k', {}, 400, /value/],
    ['a put without a key', 'PUT', '/v1/registers', { value: 1 }, 400, /key|string/],
    ['a lock without a fence', 'PUT', '/v1/registers?key=k&lock=a', { value: 1 }, 400, /fence/],
    ['broken base64', 'PUT', '/v1/registers?key=k', { value: '***', encoding: 'base64' }, 400, /base64/],
    ['conditions that differ', 'PUT', '/v1/registers?key=k&ifVersion=1', { value: 1, ifVersion: '2' }, 400, /twice/],
    ['an unknown query field', 'GET', '/v1/locks?prefx=a', undefined, 400, /prefx/],
    ['a query field twice', 'GET', '/v1/locks?prefix=a&prefix=b', undefined, 400, /twice/],
    ['broken percent-encoding', 'GET', '/v1/locks?prefix=%E0%A4', undefined, 400, /percent/],
    ['a limit of zero', 'GET', '/v1/locks?limit=0', undefined, 400, /limit/],
    ['a limit beyond the limit', 'GET', '/v1/locks?limit=1001', undefined, 400, /limit/],
    ['a wrong cursor', 'GET', '/v1/locks?cursor=%F0%9F%98%80', undefined, 400, /cursor/],
    ['a wrong watch cursor', 'GET', '/v1/watch?from=yesterday', undefined, 400, /cursor/],
    ['a missing register', 'GET', '/v1/registers?key=none', undefined, 404, /does not exist/],
    ['an unknown route', 'GET', '/v1/lock/a', undefined, 404, /no route for/],
    ['a wrong method', 'GET', '/v1/acquire', undefined, 405, /accepts POST/],
    ['another wrong method', 'PATCH', '/v1/registers?key=k', { value: 1 }, 405, /accepts GET, PUT, DELETE/],
    ['a write to the page', 'POST', '/', {}, 405, /accepts GET/],
    ['a list', 'POST', '/v1/acquire', [1], 400, /body/],
    ['null', 'POST', '/v1/acquire', null, 400, /body/],
  ]
  for (const [what, method, path, body, status, text] of cases) {
    it(`${what}: ${status}`, async () => {
      const { call, get } = await serve()
      const answer = await call(method, path, body)
      expect(answer.body).toMatchObject({
        status,
        type: `urn:leasehold:error:${answer.body.code}`,
        cluster: 'test-cluster',
        epoch: 1,
      })
      expect(answer.status).toBe(status)
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
      expect(`${answer.body.detail} ${answer.body.hint ?? ''}`).toMatch(text)
      expect(answer.body.title.length).toBeGreaterThan(5)
      const after = (await get('/v1/locks')).body
      expect(after.held).toEqual([])
    })
  }

  it('for a body that is not JSON, not UTF-8, or not declared as JSON', async () => {
    const { call } = await serve()
    const json = { 'content-type': 'application/json' }
    expect(await call('POST', '/v1/acquire', '{"name":', json)).toMatchObject({
      status: 400,
      body: { detail: 'the body is not JSON' },
    })
    expect(await call('POST', '/v1/acquire', new Uint8Array([0x22, 0xff, 0x22]), json)).toMatchObject({ status: 400 })
    expect(await call('POST', '/v1/acquire', '', json)).toMatchObject({ status: 400 })
    expect(
      await call('POST', '/v1/acquire', 'name=a', { 'content-type': 'application/x-www-form-urlencoded' }),
    ).toMatchObject({
      status: 415,
      body: { hint: expect.stringContaining('application/json') },
    })
    expect(await call('POST', '/v1/acquire')).toMatchObject({ status: 415 })
    expect(
      await call('POST', '/v1/acquire', '{"name":"a"}', { 'content-type': 'Application/JSON; charset=utf-8' }),
    ).toMatchObject({ status: 200 })
  })

  it('for a body that is too large, announced or not', async () => {
    const { call, server, get } = await serve()
    const large = 'x'.repeat(300 * 1024)
    expect(await call('POST', '/v1/acquire', { name: large })).toMatchObject({ status: 413 })
    const socket = await rawSocket(server.port)
    socket.write('PUT /v1/registers?key=k HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n')
    const answer = readAll(socket)
    for (let i = 0; i < 40 && socket.writable; i++) socket.write(`2000\r\n${'x'.repeat(0x2000)}\r\n`)
    expect(await answer).toMatch(/^HTTP\/1\.1 413 /)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('for values and data above the limits of the state', async () => {
    const { call, post } = await serve()
    expect(await call('PUT', '/v1/registers?key=k', new Uint8Array(65_537))).toMatchObject({
      status: 429,
      body: { code: 'limit' },
    })
    expect(await post('/v1/acquire', { name: 'a', data: 'x'.repeat(4_097) })).toMatchObject({
      status: 429,
      body: { code: 'limit' },
    })
    const many = Array.from({ length: 65 }, (_, i) => `n${i}`)
    expect(await post('/v1/acquire', { locks: many })).toMatchObject({ status: 429, body: { code: 'limit' } })
  })

  it('for JSON that is nested too deeply', async () => {
    const { call, post } = await serve()
    const deep = `{"value":${'['.repeat(60_000)}${']'.repeat(60_000)}}`
    const json = { 'content-type': 'application/json' }
    expect([200, 400]).toContain((await call('PUT', '/v1/registers?key=k', deep, json)).status)
    await call('PUT', '/v1/registers?key=raw', '['.repeat(60_000), { 'content-type': 'text/plain' })
    await call('PUT', '/v1/registers?key=deep', '['.repeat(30_000) + ']'.repeat(30_000), {
      'content-type': 'text/plain',
    })
    for (const key of ['raw', 'deep']) {
      expect(await call('GET', `/v1/registers?key=${key}`)).toMatchObject({ status: 200, body: { encoding: 'text' } })
    }
    const data = `{"name":"a","data":${'['.repeat(60_000)}${']'.repeat(60_000)}}`
    expect([400, 429]).toContain((await call('POST', '/v1/acquire', data, json)).status)
    expect(await post('/v1/acquire', { name: 'a' })).toMatchObject({ status: 200 })
  })

  it('but names that are special to JavaScript are valid', async () => {
    const { call, get } = await serve()
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const answer = await call('POST', '/v1/acquire', `{"name":${JSON.stringify(name)}}`, {
        'content-type': 'application/json',
      })
      expect(answer.status).toBe(200)
      expect(Object.entries(answer.body.tokens)).toEqual([[name, answer.body.token]])
    }
    expect(
      await call('POST', '/v1/acquire', '{"name":"a","__proto__":{"session":"x"}}', {
        'content-type': 'application/json',
      }),
    ).toMatchObject({ status: 400 })
    expect((await get('/v1/locks')).body.held).toHaveLength(3)
  })
})

describe('input that is not HTTP', () => {
  it('gets status 400, and the connection is closed', async () => {
    const { server, get } = await serve()
    for (const garbage of [
      '\x16\x03\x01\x02\x00\x01\x00',
      'HELLO\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      '\0'.repeat(100),
      'GET  HTTP/1.1\r\nhost: x\r\n\r\n',
    ]) {
      const socket = await rawSocket(server.port)
      socket.write(garbage)
      expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 400 /)
    }
    const socket = await rawSocket(server.port)
    socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 431 /)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('such as paths with .. are unknown routes', async () => {
    const { server, get } = await serve()
    for (const path of [
      '//v1/locks',
      '/v1/../../etc/passwd',
      '/v1/locks/',
      '/v1%2flocks',
      '*',
      'http://localhost/v1/nothing',
    ]) {
      const socket = await rawSocket(server.port)
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
      expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 (404|400) /)
    }
    expect((await get('/healthz')).status).toBe(200)
  })
})

it('arbitrary JSON to any route never causes status 500', async () => {
  const { url, get } = await serve()
  const posts = ROUTES.filter((route) => route.method === 'POST').map((route) => route.path)
  const fields = [
    'name',
    'locks',
    'mode',
    'ttl',
    'wait',
    'session',
    'hold',
    'reason',
    'request',
    'data',
    'permits',
    'nonce',
    'persistent',
  ]
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('a', '10s', '150ms', 'shared', ['a'], 0, 1))
  const body = fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 5 }).map((one) => ({ ...one, wait: 0 }))
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...posts), fc.oneof(fc.jsonValue(), body), async (path, json) => {
      const answer = await call(url, 'POST', path, JSON.stringify(json), { 'content-type': 'application/json' })
      expect(answer.status).toBeGreaterThanOrEqual(200)
      expect(answer.status).toBeLessThan(500)
      if (answer.status !== 200) expect(answer.body.code).toBeTypeOf('string')
    }),
    { numRuns: 150 },
  )
  expect((await get('/healthz')).status).toBe(200)
})
