import Fastify, { type FastifyInstance } from 'fastify'
import { createLocks, type Hold, type Locks } from 'leasehold'
import { currentHold, leasehold, withHold } from 'leasehold/fastify'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

describe('Fastify', () => {
  let locks: Locks
  let app: FastifyInstance
  const holds: Hold[] = []
  beforeEach(async () => {
    locks = createLocks('memory:fastify')
    app = Fastify({ forceCloseConnections: true })
    holds.length = 0
    await app.register(leasehold as never, { locks })
  })
  afterEach(() => app.close())

  const route = (wait: string | number = '5s') =>
    withHold(
      { locks, name: (request: { params: unknown }) => `invoice/${(request.params as { id: string }).id}`, wait },
      async (_request, _reply, hold) => {
        expect(currentHold()).toBe(hold)
        holds.push(hold)
        return { name: hold.name, token: String(hold.token) }
      },
    )

  test('hands the hold to the handler, and gives it back before the reply', async () => {
    app.post('/invoices/:id', route())
    const reply = await app.inject({ method: 'POST', url: '/invoices/42' })
    expect(reply.statusCode).toBe(200)
    expect(reply.json()).toEqual({ name: 'invoice/42', token: expect.stringMatching(/^\d+$/) })
    expect(holds[0]?.state).toBe('released')
  })

  test('a lock that is taken is 409, not 500, and an error of the handler stays its own', async () => {
    app.post('/invoices/:id', route(0))
    app.post(
      '/broken',
      withHold({ locks, name: 'b' }, () => Promise.reject(Object.assign(new Error('own'), { statusCode: 418 }))),
    )
    const taken = await locks.acquire('invoice/42')
    const reply = await app.inject({ method: 'POST', url: '/invoices/42' })
    expect([reply.statusCode, reply.json().message]).toEqual([409, expect.stringContaining('invoice/42')])
    await taken.release()
    expect((await app.inject({ method: 'POST', url: '/broken' })).statusCode).toBe(418)
    expect((await locks.query()).held).toEqual([])
  })

  test('a client that goes away leaves the queue', async () => {
    app.post('/invoices/:id', route('20s'))
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const taken = await locks.acquire('invoice/42')
    const controller = new AbortController()
    const request = fetch(`${url}/invoices/42`, { method: 'POST', signal: controller.signal }).catch(() => 'gone')
    await expect.poll(async () => (await locks.query()).pending.length).toBe(1)
    controller.abort()
    expect(await request).toBe('gone')
    await expect.poll(async () => (await locks.query()).pending.length).toBe(0)
    await taken.release()
    expect(holds).toEqual([])
  })

  test('app.locks is the client, for the whole application, and is closed with it', async () => {
    await app.register(async (inner) => {
      inner.get('/seen', async () => ({ same: (inner as unknown as { locks: Locks }).locks === locks }))
    })
    expect((await app.inject('/seen')).json()).toEqual({ same: true })
    await app.close()
    await expect(locks.acquire('x')).rejects.toThrow()
  })
})
