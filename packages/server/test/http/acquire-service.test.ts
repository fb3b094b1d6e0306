import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import { serve, until } from '../support/harness.js'

/** An acquire whose client can disconnect. */
function acquire(url: string, body: Record<string, unknown>): { disconnect(): void; answer: Promise<number> } {
  const request = httpRequest(`${url}/v1/acquire`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  const answer = new Promise<number>((resolve) => {
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('error', () => resolve(0))
  })
  request.end(JSON.stringify(body))
  return { disconnect: () => request.destroy(), answer }
}

describe('an acquire whose client disconnects', () => {
  it('leaves the queue, and closes the session that was opened for it', async () => {
    const { post, get, url } = await serve()
    const first = await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const waiting = acquire(url, { name: 'a', wait: '30s' })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    waiting.disconnect()
    await until(async () => (await get('/v1/locks')).body.pending.length === 0)
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 1)
    await post('/v1/release', { hold: first.body.hold })
    expect(await post('/v1/acquire', { name: 'a', wait: 0 })).toMatchObject({ status: 200 })
  })

  it('leaves the queue, and keeps a session that was opened before', async () => {
    const { post, get, url } = await serve()
    await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const { session } = (await post('/v1/sessions', { ttl: '1m' })).body
    const other = await post('/v1/acquire', { name: 'b', session })
    const waiting = acquire(url, { name: 'a', wait: '30s', session })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    waiting.disconnect()
    await until(async () => (await get('/v1/locks')).body.pending.length === 0)
    expect(await post('/v1/renew', { hold: other.body.hold })).toMatchObject({ status: 200 })
  })

  it('keeps a retry with the same nonce waiting', async () => {
    const { post, get, url, member } = await serve()
    const acquires = () => member.submitted.filter(({ kind }) => kind === 'acquire').length
    const first = await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const body = { name: 'a', wait: '30s', nonce: 'ce'.repeat(16) }
    const lost = acquire(url, body)
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    const before = acquires()
    const repeat = post('/v1/acquire', body)
    await until(() => acquires() > before)
    lost.disconnect()
    await new Promise((resolve) => setTimeout(resolve, 50))
    await post('/v1/release', { hold: first.body.hold })
    expect((await repeat).status).toBe(200)
    expect(await post('/v1/renew', { hold: (await repeat).body.hold })).toMatchObject({ status: 200 })
  })

  it('keeps the hold that was granted to the same nonce before', async () => {
    const { post, url, member } = await serve()
    const body = { name: 'a', wait: '30s', nonce: 'cf'.repeat(16) }
    const granted = await post('/v1/acquire', body)
    member.frozen = true
    const before = member.submitted.length
    const repeat = acquire(url, body)
    await until(() => member.submitted.length > before)
    repeat.disconnect()
    await new Promise((resolve) => setTimeout(resolve, 50))
    member.thaw()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await post('/v1/renew', { hold: granted.body.hold })).toMatchObject({ status: 200 })
  })

  it('releases exactly its own grant if the grant came first', async () => {
    const { post, get, url, member } = await serve()
    const { session } = (await post('/v1/sessions', { ttl: '1m' })).body
    const other = await post('/v1/acquire', { name: 'b', session })
    for (const owned of [true, false]) {
      member.frozen = true
      const waiting = acquire(url, owned ? { name: 'a' } : { name: 'a', session })
      const kind = owned ? 'openSession' : 'acquire'
      const before = member.submitted.length
      await until(() => member.submitted.slice(before - 1).some((command) => command.kind === kind))
      waiting.disconnect()
      await new Promise((resolve) => setTimeout(resolve, 50))
      member.thaw()
      await until(async () => {
        const { held, pending } = (await get('/v1/locks?name=a')).body
        return held.length === 0 && pending.length === 0
      })
    }
    await until(async () => (await get('/v1/sessions')).body.sessions.length === 1)
    expect(await post('/v1/renew', { hold: other.body.hold })).toMatchObject({ status: 200 })
    expect(await post('/v1/acquire', { name: 'a', wait: 0 })).toMatchObject({ status: 200 })
  })

  it('keeps its place in the queue if it has a number, so that it can be retried or cancelled', async () => {
    const { post, get, url } = await serve()
    const first = await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const { session } = (await post('/v1/sessions', { ttl: '1m' })).body
    const waiting = acquire(url, { name: 'a', wait: '30s', session, request: 1 })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    waiting.disconnect()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect((await get('/v1/locks')).body.pending).toHaveLength(1)
    const repeat = post('/v1/acquire', { name: 'a', wait: '30s', session, request: 1 })
    await post('/v1/release', { hold: first.body.hold })
    const second = await repeat
    expect(second.status).toBe(200)
    const another = acquire(url, { name: 'a', wait: '30s', session, request: 2 })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    another.disconnect()
    expect((await post('/v1/cancel', { session, request: 2, number: 3 })).status).toBe(200)
    expect((await get('/v1/locks')).body.pending).toHaveLength(0)
    // Only the cancel has claimed the number 3, so the next request claims 4.
    await post('/v1/release', { hold: second.body.hold })
    expect((await post('/v1/acquire', { name: 'a', session, request: 4 })).status).toBe(200)
  })

  it('keeps the place of a retry of the same request', async () => {
    const { post, get, url, member } = await serve()
    const acquires = () => member.submitted.filter(({ kind }) => kind === 'acquire').length
    const first = await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const { session } = (await post('/v1/sessions', { ttl: '1m' })).body
    const waiting = acquire(url, { name: 'a', wait: '30s', session, request: 1 })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    const before = acquires()
    const repeat = post('/v1/acquire', { name: 'a', wait: '30s', session, request: 1 })
    await until(() => acquires() > before)
    waiting.disconnect()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect((await get('/v1/locks')).body.pending).toHaveLength(1)
    await post('/v1/release', { hold: first.body.hold })
    expect((await repeat).status).toBe(200)
  })
})

describe('a waiting acquire', () => {
  it('renews the session that was opened for it, and the hold starts with a full ttl', async () => {
    const { post } = await serve()
    const first = await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const waiting = post('/v1/acquire', { name: 'a', ttl: '2s', wait: '30s' })
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    await post('/v1/release', { hold: first.body.hold })
    const got = await waiting
    expect(got.status).toBe(200)
    expect(got.body.expiresInMs).toBeGreaterThan(1_000)
    expect(got.body.expiresInMs).toBeLessThanOrEqual(2_000)
  })

  it('ends when the given session expires', async () => {
    const { post } = await serve()
    await post('/v1/acquire', { name: 'a', ttl: '1m' })
    const { session } = (await post('/v1/sessions', { ttl: '200ms' })).body
    expect(await post('/v1/acquire', { name: 'a', session, wait: '20s' })).toMatchObject({
      status: 410,
      body: { code: 'session-ended' },
    })
  })

  it('is granted in the order of arrival among fifty waiters', async () => {
    const { post, get } = await serve()
    let { hold } = (await post('/v1/acquire', { name: 'a', ttl: '1m' })).body
    const order: number[] = []
    const waiting: Promise<void>[] = []
    for (let i = 0; i < 50; i++) {
      waiting.push(
        post('/v1/acquire', { name: 'a', ttl: '1m', wait: '20s' }).then((answer) => {
          order.push(i)
          hold = answer.body.hold
        }),
      )
      await until(async () => (await get('/v1/locks')).body.pending.length === i + 1)
    }
    for (let i = 0; i < 50; i++) {
      await post('/v1/release', { hold })
      await until(() => order.length === i + 1)
    }
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i))
    await Promise.all(waiting)
  })
})

describe('a member without a quorum', () => {
  it('redirects to the leader, and returns no-quorum without one', async () => {
    const { post, get, member } = await serve()
    member.refusal = { kind: 'refused', code: 'no-quorum', message: 'this member does not lead' }
    member.changed = { role: 'follower', leader: 'n2', leaderUrl: 'http://127.0.0.1:1' }
    const sentOn = await post('/v1/acquire', { name: 'a' })
    expect(sentOn).toMatchObject({
      status: 307,
      body: { code: 'no-quorum', retryable: true, hint: 'the leader is at http://127.0.0.1:1' },
    })
    expect(sentOn.headers.get('location')).toBe('http://127.0.0.1:1/v1/acquire')
    const query = await get('/v1/locks?prefix=a%2Fb')
    expect(query.headers.get('location')).toBe('http://127.0.0.1:1/v1/locks?prefix=a%2Fb')
    member.changed = { role: 'candidate', leader: '', leaderUrl: '' }
    expect(await post('/v1/acquire', { name: 'a' })).toMatchObject({ status: 503, body: { code: 'no-quorum' } })
    expect(await get('/v1/locks?stale=true')).toMatchObject({ status: 200 })
  })

  it('is healthy but not ready, and reports why', async () => {
    const { get, member } = await serve()
    expect(await get('/readyz')).toMatchObject({ status: 200, body: { ready: true, reasons: [] } })
    member.changed = { leader: '', role: 'candidate', disk: 'full', commitIndex: 5_000, appliedIndex: 10 }
    const answer = await get('/readyz')
    expect(answer.status).toBe(503)
    expect(answer.body.reasons).toHaveLength(3)
    member.changed = { role: 'stopped', leader: '', failure: 'fsync failed' }
    expect((await get('/readyz')).body.reasons[0]).toMatch(/fsync failed/)
    expect(await get('/healthz')).toMatchObject({ status: 200, body: { ok: true } })
  })
})
