import { describe, expect, it } from 'vitest'
import { serve } from '../../support/harness.js'

describe('sessions', () => {
  it('own several holds, which end with them', async () => {
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

  it('expire without renewals, and their holds are lost', async () => {
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

  it('are opened once per nonce', async () => {
    const { post } = await serve()
    const nonce = 'ab'.repeat(16)
    const one = await post('/v1/sessions', { nonce })
    const two = await post('/v1/sessions', { nonce })
    expect(two.body.session).toBe(one.body.session)
  })

  it('can be closed by an operator by their id, which starts lock delays', async () => {
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

  it('reject a wrong secret', async () => {
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
