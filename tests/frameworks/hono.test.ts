import { Hono } from 'hono'
import { createLocks, type Hold, type Locks } from 'leasehold'
import { withHold } from 'leasehold/hono'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

describe('Hono', () => {
  let locks: Locks
  beforeEach(() => {
    locks = createLocks('memory:hono')
  })
  afterEach(() => locks.close())

  function app(wait: string | number = '5s') {
    const holds: Hold[] = []
    const hono = new Hono().post(
      '/invoices/:id',
      withHold(
        { locks, name: (c: import('hono').Context) => `invoice/${c.req.param('id')}`, wait },
        async (c, hold) => {
          holds.push(hold)
          return c.json({ name: hold.name, state: hold.state })
        },
      ),
    )
    return { hono, holds }
  }

  test('hands the hold to the handler, and gives it back', async () => {
    const { hono, holds } = app()
    const response = await hono.request('/invoices/42', { method: 'POST' })
    expect([response.status, await response.json()]).toEqual([200, { name: 'invoice/42', state: 'held' }])
    expect(holds[0]?.state).toBe('released')
  })

  test('a lock that is taken is 409 with the code', async () => {
    const { hono } = app(0)
    const taken = await locks.acquire('invoice/42')
    const response = await hono.request('/invoices/42', { method: 'POST' })
    expect([response.status, response.headers.get('content-type')]).toEqual([409, 'application/problem+json'])
    expect(await response.json()).toMatchObject({ code: 'busy' })
    await taken.release()
  })

  test('a client that goes away leaves the queue', async () => {
    const { hono, holds } = app('20s')
    const taken = await locks.acquire('invoice/42')
    const controller = new AbortController()
    const answer = hono.request(new Request('http://x/invoices/42', { method: 'POST', signal: controller.signal }))
    await expect.poll(async () => (await locks.query()).pending.length).toBe(1)
    controller.abort()
    expect((await answer).status).toBe(499)
    await expect.poll(async () => (await locks.query()).pending.length).toBe(0)
    await taken.release()
    expect(holds).toEqual([])
  })
})
