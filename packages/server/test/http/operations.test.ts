import type { SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { querySession } from '../../src/state-queries.js'
import { LocalMember } from '../support/local-member.js'
import { serve, until } from '../support/harness.js'

describe('acquire, renew, release', () => {
  it('opens a session when none is given, and ends it with the release', async () => {
    const { post, get } = await serve()
    const got = await post('/v1/acquire', { name: 'billing/invoice-42', ttl: '10s' })
    expect(got.status).toBe(200)
    expect(got.body).toMatchObject({ names: ['billing/invoice-42'], ttlMs: 10_000, cluster: 'test-cluster', epoch: 1 })
    expect(got.body.token).toBe(got.body.id)
    expect(got.body.token).toMatch(/^281474976710\d{3}$/)
    expect(got.body.tokens).toEqual({ 'billing/invoice-42': got.body.token })
    expect(got.body.expiresInMs).toBeGreaterThan(9_000)
    expect(got.body.expiresInMs).toBeLessThanOrEqual(10_000)
    expect(got.headers.get('leasehold-cluster')).toBe('test-cluster')
    expect(got.headers.get('leasehold-epoch')).toBe('1')

    const renewed = await post('/v1/renew', { hold: got.body.hold })
    expect(renewed).toMatchObject({ status: 200, body: { id: got.body.id } })
    expect(renewed.body.expiresInMs).toBeGreaterThan(9_000)

    const state = (await get('/v1/locks?name=billing/invoice-42')).body
    expect(state.held).toHaveLength(1)
    expect(state.held[0]).toMatchObject({ hold: got.body.id, persistent: false })
    expect(JSON.stringify(state)).not.toContain(got.body.hold.slice(20))

    expect(await post('/v1/release', { hold: got.body.hold })).toMatchObject({ status: 200, body: { released: true } })
    expect(await post('/v1/release', { hold: got.body.hold })).toMatchObject({
      status: 409,
      body: { code: 'not-holder' },
    })
    const lost = await post('/v1/renew', { hold: got.body.hold })
    expect(lost).toMatchObject({ status: 410, body: { code: 'lost', retryable: false } })
    const after = (await get('/v1/locks')).body
    expect(after.held).toEqual([])
    expect(after.sessions).toEqual([])
  })

  it('gives every later grant a greater token', async () => {
    const { post } = await serve()
    let before = 0n
    for (let i = 0; i < 5; i++) {
      const { body } = await post('/v1/acquire', { name: 'a' })
      expect(BigInt(body.token)).toBeGreaterThan(before)
      before = BigInt(body.token)
      await post('/v1/release', { hold: body.hold })
    }
  })

  it('takes several locks with modes and permits, all or nothing', async () => {
    const { post } = await serve()
    const got = await post('/v1/acquire', {
      locks: ['account/1', { name: 'account/2', mode: 'shared' }, { name: 'gpu', permits: 4 }],
      wait: 0,
    })
    expect(got.status).toBe(200)
    expect(got.body.names).toEqual(['account/1', 'account/2', 'gpu'])
    expect(got.body.slots).toEqual({ gpu: 0 })
    expect(got.body.locks[1]).toMatchObject({ name: 'account/2', mode: 'shared' })
    const second = await post('/v1/acquire', { locks: ['free', { name: 'account/2' }], wait: 0 })
    expect(second).toMatchObject({ status: 409, body: { code: 'busy', retryable: true } })
    expect(await post('/v1/acquire', { name: 'free', wait: 0 })).toMatchObject({ status: 200 })
    const permit = await post('/v1/acquire', { name: 'gpu', permits: 4 })
    expect(permit.body).toMatchObject({ slot: 1 })
    expect(await post('/v1/acquire', { name: 'gpu', permits: 5 })).toMatchObject({
      status: 400,
      body: { code: 'mismatch' },
    })
    expect(await post('/v1/acquire', { name: 'account/2', mode: 'shared' })).toMatchObject({ status: 200 })
  })

  it('leaves no session behind when it is busy', async () => {
    const { post, get } = await serve()
    await post('/v1/acquire', { name: 'a' })
    for (let i = 0; i < 3; i++) expect((await post('/v1/acquire', { name: 'a', wait: 0 })).status).toBe(409)
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 1)
  })

  it('answers timeout when the wait is over', async () => {
    const { post } = await serve()
    await post('/v1/acquire', { name: 'a' })
    const late = await post('/v1/acquire', { name: 'a', wait: '60ms' })
    expect(late).toMatchObject({ status: 408, body: { code: 'timeout', retryable: true } })
    expect(late.headers.get('content-type')).toBe('application/problem+json')
  })

  it('shows owner data', async () => {
    const { post, get } = await serve()
    await post('/v1/acquire', { name: 'a', data: 'host-1' })
    await post('/v1/acquire', { name: 'b', data: { pid: 7 } })
    const { held } = (await get('/v1/locks')).body
    expect(held.map((one: { data: string }) => one.data).sort()).toEqual(['host-1', '{"pid":7}'])
  })
})

describe('sessions', () => {
  it('carry several holds, and end with all of them', async () => {
    const { post, get } = await serve()
    const { body } = await post('/v1/sessions', { ttl: '5s', client: 'deploy' })
    expect(body).toMatchObject({ ttlMs: 5_000 })
    const { session } = body
    const a = await post('/v1/acquire', { name: 'a', session })
    const b = await post('/v1/acquire', { name: 'b', session, ttl: '5s' })
    expect(b.body.expiresInMs).toBeLessThanOrEqual(5_000)
    expect((await get('/v1/sessions')).body.sessions).toMatchObject([
      { session: body.id, client: 'deploy', holds: 2, waiters: 0 },
    ])
    expect(await post('/v1/release', { hold: a.body.hold })).toMatchObject({ status: 200 })
    expect(await post('/v1/renew', { session })).toMatchObject({ status: 200, body: { ttlMs: 5_000 } })
    expect(await post('/v1/sessions/end', { session })).toMatchObject({ status: 200, body: { ended: body.id } })
    expect(await post('/v1/renew', { session })).toMatchObject({ status: 410, body: { code: 'session-ended' } })
    expect(await post('/v1/renew', { hold: b.body.hold })).toMatchObject({ status: 410, body: { code: 'lost' } })
    expect(await post('/v1/acquire', { name: 'a', session })).toMatchObject({
      status: 410,
      body: { code: 'session-ended' },
    })
  })

  it('expire when nobody renews them, and their holds are lost', async () => {
    const { post } = await serve()
    const { body } = await post('/v1/acquire', { name: 'a', ttl: '150ms' })
    const next = await post('/v1/acquire', { name: 'a', wait: '5s' })
    expect(BigInt(next.body.token)).toBeGreaterThan(BigInt(body.token))
    expect(await post('/v1/renew', { hold: body.hold })).toMatchObject({
      status: 410,
      body: { code: 'lost', reason: 'expired' },
    })
    expect(await post('/v1/release', { hold: body.hold })).toMatchObject({ status: 409, body: { code: 'not-holder' } })
  })

  it('are opened once for one nonce', async () => {
    const { post } = await serve()
    const nonce = 'ab'.repeat(16)
    const one = await post('/v1/sessions', { nonce })
    const two = await post('/v1/sessions', { nonce })
    expect(two.body.session).toBe(one.body.session)
  })

  it('are ended by an operator with their id, and lock delays count then', async () => {
    const { post, get } = await serve()
    const { body } = await post('/v1/acquire', { name: 'a', lockDelay: '20s' })
    const { session } = (await get('/v1/sessions')).body.sessions[0]
    expect(await post('/v1/sessions/end', { session, reason: 'stuck' })).toMatchObject({
      status: 200,
      body: { ended: session },
    })
    expect(await post('/v1/renew', { hold: body.hold })).toMatchObject({ status: 410, body: { code: 'lost' } })
    expect((await get('/v1/locks')).body).toMatchObject({ held: [], delays: [{ name: 'a' }] })
    expect(await post('/v1/acquire', { name: 'a', wait: 0 })).toMatchObject({ status: 409, body: { code: 'busy' } })
  })

  it('refuse a wrong secret', async () => {
    const { post } = await serve()
    const one = (await post('/v1/sessions', {})).body.session as string
    const wrong = one.slice(0, -6) + (one.endsWith('AAAAAA') ? 'BBBBBB' : 'AAAAAA')
    expect(await post('/v1/renew', { session: wrong })).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    const { hold } = (await post('/v1/acquire', { name: 'a', session: one })).body
    const forged = hold.slice(0, -6) + (hold.endsWith('AAAAAA') ? 'BBBBBB' : 'AAAAAA')
    expect(await post('/v1/release', { hold: forged })).toMatchObject({ status: 403 })
    expect(await post('/v1/release', { hold })).toMatchObject({ status: 200 })
  })
})

describe('numbered requests', () => {
  it('are answered once, and answered again', async () => {
    const { post } = await serve()
    const { session } = (await post('/v1/sessions', {})).body
    const one = await post('/v1/acquire', { name: 'a', session, request: 1 })
    const again = await post('/v1/acquire', { name: 'a', session, request: 1 })
    expect(again.status).toBe(200)
    expect(again.body.hold).toBe(one.body.hold)
    await post('/v1/release', { hold: one.body.hold })
    expect(await post('/v1/acquire', { name: 'a', session, request: 1 })).toMatchObject({
      status: 410,
      body: { code: 'lost' },
    })
  })

  it('may come out of order', async () => {
    const { post } = await serve()
    const { session } = (await post('/v1/sessions', {})).body
    for (const request of [3, 1, 2, 5, 4]) {
      expect(await post('/v1/acquire', { name: `n${request}`, session, request })).toMatchObject({ status: 200 })
    }
  })

  it('of a nonce return the same hold', async () => {
    const { post, get } = await serve()
    const nonce = 'cd'.repeat(16)
    const one = await post('/v1/acquire', { name: 'a', nonce })
    const again = await post('/v1/acquire', { name: 'a', nonce })
    expect(again.body.hold).toBe(one.body.hold)
    expect((await get('/v1/locks')).body.held).toHaveLength(1)
  })

  it('go on above what the state knows after a restart of the server', async () => {
    const member = new LocalMember()
    const first = await serve({ member })
    const { session } = (await first.post('/v1/sessions', { ttl: '1m' })).body
    const a = await first.post('/v1/acquire', { name: 'a', session })
    const b = await first.post('/v1/acquire', { name: 'b', session, request: 7 })
    await first.server.close()
    const second = await serve({ member })
    const c = await second.post('/v1/acquire', { name: 'c', session })
    expect(c.status).toBe(200)
    expect(new Set([a.body.id, b.body.id, c.body.id]).size).toBe(3)
    const again = await second.post('/v1/acquire', { name: 'b', session, request: 7 })
    expect(again.body.hold).toBe(b.body.hold)
    expect(await second.post('/v1/release', { hold: a.body.hold })).toMatchObject({ status: 200 })
  })

  it('are acknowledged, so that a session never runs out of numbers', async () => {
    const { post, member } = await serve()
    const { session, id } = (await post('/v1/sessions', { ttl: '1m' })).body
    await post('/v1/acquire', { name: 'busy', session })
    for (let round = 0; round < 27; round++) {
      const some = Array.from({ length: 20 }, () => post('/v1/acquire', { name: 'busy', session, wait: 0 }))
      for (const answer of await Promise.all(some)) expect(answer.body.code).toBe('busy')
    }
    const serial = Number(BigInt(id) & (2n ** 48n - 1n)) as SessionId
    expect(querySession(member.state, serial)?.answered.length).toBeLessThan(30)
  })

  it('of the client are kept for a while, then acknowledged', async () => {
    const { post, member } = await serve()
    const { session, id } = (await post('/v1/sessions', { ttl: '1m' })).body
    for (let request = 1; request <= 100; request++) {
      const { body } = await post('/v1/acquire', { name: 'a', session, request })
      expect((await post('/v1/release', { hold: body.hold })).status).toBe(200)
    }
    const serial = Number(BigInt(id) & (2n ** 48n - 1n)) as SessionId
    expect(querySession(member.state, serial)?.answered.length).toBeLessThan(70)
    expect(await post('/v1/acquire', { name: 'a', session, request: 1 })).toMatchObject({
      status: 410,
      body: { code: 'expired-request' },
    })
    expect(await post('/v1/acquire', { name: 'a', session, request: 99 })).toMatchObject({
      status: 410,
      body: { code: 'lost' },
    })
  })

  it('are cancelled by number', async () => {
    const { post } = await serve()
    const { session } = (await post('/v1/sessions', {})).body
    const held = await post('/v1/acquire', { name: 'a' })
    const waiting = post('/v1/acquire', { name: 'a', session, request: 1, wait: '20s' })
    let was = ''
    await until(async () => {
      was = (await post('/v1/cancel', { session, request: 1 })).body.was
      return true
    })
    expect(['queued', 'unknown']).toContain(was)
    expect(await waiting).toMatchObject({ status: 499, body: { code: 'aborted' } })
    await post('/v1/release', { hold: held.body.hold })
    expect(await post('/v1/acquire', { name: 'a', wait: 0 })).toMatchObject({ status: 200 })
  })
})

describe('steal', () => {
  it('ends the holds of a lock, and their holders hear why', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a', mode: 'shared' })
    const two = await post('/v1/acquire', { name: 'a', mode: 'shared' })
    const stolen = await post('/v1/steal', { name: 'a', reason: 'stuck' })
    expect(new Set(stolen.body.stolen)).toEqual(new Set([one.body.id, two.body.id]))
    expect(await post('/v1/renew', { hold: one.body.hold })).toMatchObject({
      status: 410,
      body: { code: 'lost', reason: 'stolen' },
    })
    expect(await post('/v1/steal', { name: 'a', reason: 'stuck' })).toMatchObject({
      status: 409,
      body: { code: 'not-holder' },
    })
  })

  it('takes the id of one hold', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a' })
    expect(await post('/v1/steal', { hold: one.body.id, reason: 'stuck', actor: 'ann' })).toMatchObject({
      status: 200,
      body: { stolen: [one.body.id] },
    })
    const otherEpoch = String(BigInt(one.body.id) + 2n ** 48n)
    expect(await post('/v1/steal', { hold: otherEpoch, reason: 'x' })).toMatchObject({
      status: 410,
      body: { code: 'epoch-changed' },
    })
  })
})

describe('adopt and persistent holds', () => {
  it('moves a portable hold under a new token; the old handle is lost', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a', portable: true })
    const two = await post('/v1/adopt', { hold: one.body.hold, ttl: '20s' })
    expect(two.status).toBe(200)
    expect(BigInt(two.body.token)).toBeGreaterThan(BigInt(one.body.token))
    expect(two.body.ttlMs).toBe(20_000)
    expect(await post('/v1/renew', { hold: one.body.hold })).toMatchObject({
      status: 410,
      body: { code: 'lost', reason: 'moved' },
    })
    expect(await post('/v1/adopt', { hold: one.body.hold })).toMatchObject({ status: 409 })
    expect(await post('/v1/release', { hold: two.body.hold })).toMatchObject({ status: 200 })
  })

  it('keeps a persistent hold without a session', async () => {
    const { post, get } = await serve()
    const one = await post('/v1/acquire', { name: 'a', persistent: true, ttl: '200ms' })
    expect(one.body).toMatchObject({ expiresInMs: null, ttlMs: null })
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 0)
    expect(await post('/v1/renew', { hold: one.body.hold })).toMatchObject({ status: 200, body: { expiresInMs: null } })
    expect((await get('/v1/locks')).body.held).toMatchObject([{ persistent: true, session: null, remainingMs: null }])
    const moved = await post('/v1/adopt', { hold: one.body.hold })
    expect(moved.body).toMatchObject({ expiresInMs: null })
    expect((await post('/v1/release', { hold: one.body.hold })).status).toBeGreaterThanOrEqual(400)
    expect(await post('/v1/release', { hold: moved.body.hold })).toMatchObject({ status: 200 })
    expect(await post('/v1/acquire', { name: 'a', wait: 0 })).toMatchObject({ status: 200 })
  })

  it('refuses to adopt a hold that is not portable', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a' })
    expect(await post('/v1/adopt', { hold: one.body.hold })).toMatchObject({ status: 400, body: { code: 'invalid' } })
  })
})

describe('registers', () => {
  it('keep JSON, text and bytes', async () => {
    const { call, get, url } = await serve()
    const put = await call('PUT', '/v1/registers?key=config/flags', { value: { dark: true } })
    expect(put).toMatchObject({ status: 200, body: { key: 'config/flags' } })
    expect(put.headers.get('etag')).toBe(`"${put.body.version}"`)
    expect((await get('/v1/registers?key=config/flags')).body).toMatchObject({
      key: 'config/flags',
      version: put.body.version,
      value: { dark: true },
      encoding: 'json',
    })
    await call('PUT', '/v1/registers?key=t', 'plain text', { 'content-type': 'text/plain' })
    expect((await get('/v1/registers?key=t')).body).toMatchObject({ value: 'plain text', encoding: 'text' })
    await call('PUT', '/v1/registers?key=b', new Uint8Array([0xff, 0, 1]), {
      'content-type': 'application/octet-stream',
    })
    expect((await get('/v1/registers?key=b')).body).toMatchObject({ value: '/wAB', encoding: 'base64' })
    const raw = await fetch(`${url}/v1/registers?key=b`, { headers: { accept: 'application/octet-stream' } })
    expect([...new Uint8Array(await raw.arrayBuffer())]).toEqual([0xff, 0, 1])
    await call('PUT', '/v1/registers?key=s', { value: '12' })
    expect((await get('/v1/registers?key=s')).body).toMatchObject({ value: '12', encoding: 'json' })
  })

  it('compare and set by version', async () => {
    const { call } = await serve()
    const one = await call('PUT', '/v1/registers?key=k&ifVersion=0', { value: 1 })
    expect(one.status).toBe(200)
    const conflict = await call('PUT', '/v1/registers?key=k', { value: 2, ifVersion: '0' })
    expect(conflict).toMatchObject({ status: 412, body: { code: 'version-conflict', version: one.body.version } })
    const two = await call('PUT', '/v1/registers?key=k', 'two', { 'if-match': `"${one.body.version}"` })
    expect(two.status).toBe(200)
    expect(await call('PUT', '/v1/registers?key=k', 'x', { 'if-none-match': '*' })).toMatchObject({ status: 412 })
    expect(await call('DELETE', `/v1/registers?key=k&ifVersion=${one.body.version}`)).toMatchObject({ status: 412 })
    expect(await call('DELETE', `/v1/registers?key=k&ifVersion=${two.body.version}`)).toMatchObject({
      status: 200,
      body: { deleted: true },
    })
    expect(await call('GET', '/v1/registers?key=k')).toMatchObject({ status: 404, body: { status: 404 } })
  })

  it('are written under a fence only while the hold exists', async () => {
    const { call, post } = await serve()
    const { hold } = (await post('/v1/acquire', { name: 'a' })).body
    const fence = encodeURIComponent(hold)
    expect(await call('PUT', `/v1/registers?key=k&ifVersion=0&fence=${fence}`, '1')).toMatchObject({ status: 200 })
    expect(await call('PUT', '/v1/registers?key=k', { value: 2, fence: hold })).toMatchObject({ status: 200 })
    expect((await call('GET', '/v1/registers?key=k')).body).toMatchObject({ value: 2, lock: 'a' })
    expect(await call('PUT', '/v1/registers?key=k', { value: 3 })).toMatchObject({
      status: 400,
      body: { code: 'mismatch' },
    })
    await post('/v1/release', { hold })
    const late = await call('PUT', '/v1/registers?key=k', { value: 4, fence: hold })
    expect(late).toMatchObject({ status: 409, body: { code: 'not-holder' } })
    expect((await call('GET', '/v1/registers?key=k')).body).toMatchObject({ value: 2 })
  })

  it('are listed below a prefix, a page at a time', async () => {
    const { call, get, post } = await serve()
    const { hold } = (await post('/v1/acquire', { name: 'a' })).body
    await call('PUT', `/v1/registers?key=config/b&ifVersion=0&fence=${encodeURIComponent(hold)}`, 'two')
    for (const key of ['config/a', 'config2', 'config/c']) await call('PUT', `/v1/registers?key=${key}`, 'x')
    const { registers, next } = (await get('/v1/registers/list?prefix=config&limit=2')).body
    expect(registers).toMatchObject([{ key: 'config/a' }, { key: 'config/b', lock: 'a', bytes: 3 }])
    expect(next).toBe('config/b')
    const rest = await get(`/v1/registers/list?prefix=config&limit=2&after=${encodeURIComponent(next)}&stale=true`)
    expect(rest.body).toMatchObject({ registers: [{ key: 'config/c', bytes: 1 }], next: null })
    expect((await get('/v1/registers/list?limit=0')).status).toBe(400)
  })

  it('leave no session behind', async () => {
    const { call, get } = await serve()
    await call('PUT', '/v1/registers?key=k', { value: 1 })
    await call('DELETE', '/v1/registers?key=k')
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 0)
  })
})

describe('queries', () => {
  it('match prefixes by whole segments and come in pages', async () => {
    const { post, get } = await serve()
    for (const name of ['account/1', 'account/1/x', 'account/10', 'ümlaut/ß']) await post('/v1/acquire', { name })
    const names = async (query: string) =>
      (await get(`/v1/locks?${query}`)).body.held.flatMap((one: { locks: { name: string }[] }) =>
        one.locks.map((lock) => lock.name),
      )
    expect((await names('prefix=account/1')).sort()).toEqual(['account/1', 'account/1/x'])
    expect(await names(`name=${encodeURIComponent('ümlaut/ß')}`)).toEqual(['ümlaut/ß'])
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 10; page++) {
      const { body } = await get(`/v1/locks?limit=1${cursor}`)
      seen.push(...body.held.map((one: { locks: { name: string }[] }) => one.locks[0]?.name))
      if (body.next === null) break
      cursor = `&cursor=${encodeURIComponent(body.next)}`
    }
    expect(seen.sort()).toEqual(['account/1', 'account/1/x', 'account/10', 'ümlaut/ß'])
  })

  it('show waiters', async () => {
    const { post, get } = await serve()
    const { hold } = (await post('/v1/acquire', { name: 'a' })).body
    const waiting = post('/v1/acquire', { name: 'a', client: 'second', wait: '10s' })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    expect((await get('/v1/locks?name=a')).body.pending).toMatchObject([
      { client: 'second', locks: [{ name: 'a', mode: 'exclusive' }] },
    ])
    await post('/v1/release', { hold })
    expect((await waiting).status).toBe(200)
  })

  it('tell how the member stands', async () => {
    const { get, url } = await serve()
    expect((await get('/v1/cluster')).body).toMatchObject({
      cluster: 'test-cluster',
      member: 'n1',
      role: 'leader',
      leader: 'n1',
      disk: 'ok',
      url,
    })
  })
})
