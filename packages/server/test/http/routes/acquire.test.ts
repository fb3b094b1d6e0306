import type { SessionId } from '@leasehold/core'
import { describe, expect, it } from 'vitest'
import { querySession } from '../../../src/state-queries.js'
import { serve, until } from '../../support/harness.js'
import { LocalMember } from '../../support/local-member.js'

describe('acquire, renew, release', () => {
  it('opens a session if none is given, and closes it with the release', async () => {
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

  it('returns a greater token for every later grant', async () => {
    const { post } = await serve()
    let before = 0n
    for (let i = 0; i < 5; i++) {
      const { body } = await post('/v1/acquire', { name: 'a' })
      expect(BigInt(body.token)).toBeGreaterThan(before)
      before = BigInt(body.token)
      await post('/v1/release', { hold: body.hold })
    }
  })

  it('acquires several locks with modes and permits atomically', async () => {
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

  it('leaves no session behind when the lock is busy', async () => {
    const { post, get } = await serve()
    await post('/v1/acquire', { name: 'a' })
    for (let i = 0; i < 3; i++) expect((await post('/v1/acquire', { name: 'a', wait: 0 })).status).toBe(409)
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 1)
  })

  it('returns timeout after the wait', async () => {
    const { post } = await serve()
    await post('/v1/acquire', { name: 'a' })
    const late = await post('/v1/acquire', { name: 'a', wait: '60ms' })
    expect(late).toMatchObject({ status: 408, body: { code: 'timeout', retryable: true } })
    expect(late.headers.get('content-type')).toBe('application/problem+json')
  })

  it('stores owner data', async () => {
    const { post, get } = await serve()
    await post('/v1/acquire', { name: 'a', data: 'host-1' })
    await post('/v1/acquire', { name: 'b', data: { pid: 7 } })
    const { held } = (await get('/v1/locks')).body
    expect(held.map((one: { data: string }) => one.data).sort()).toEqual(['host-1', '{"pid":7}'])
  })
})

describe('numbered requests', () => {
  it('return the same answer to a retry', async () => {
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

  it('may arrive out of order', async () => {
    const { post } = await serve()
    const { session } = (await post('/v1/sessions', {})).body
    for (const request of [3, 1, 2, 5, 4]) {
      expect(await post('/v1/acquire', { name: `n${request}`, session, request })).toMatchObject({ status: 200 })
    }
  })

  it('with the same nonce return the same hold', async () => {
    const { post, get } = await serve()
    const nonce = 'cd'.repeat(16)
    const one = await post('/v1/acquire', { name: 'a', nonce })
    const again = await post('/v1/acquire', { name: 'a', nonce })
    expect(again.body.hold).toBe(one.body.hold)
    expect((await get('/v1/locks')).body.held).toHaveLength(1)
  })

  it('continue above the numbers of the state after a restart of the server', async () => {
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

  it('are acknowledged, so that the request window never fills up', async () => {
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

  it('of the client are kept for retries, then acknowledged', async () => {
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

  it('can be cancelled by number', async () => {
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

  it('rejects the adoption of a hold that is not portable', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a' })
    expect(await post('/v1/adopt', { hold: one.body.hold })).toMatchObject({ status: 400, body: { code: 'invalid' } })
  })
})
