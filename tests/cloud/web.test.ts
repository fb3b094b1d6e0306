import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { UnavailableError } from '@leasehold/core'
import type { Guard } from '@leasehold/fence'
import { fencedFetch } from '@leasehold/fence/http'
import { fenced as fencedExpress } from '@leasehold/fence/http/express'
import { fenced as fencedFastify } from '@leasehold/fence/http/fastify'
import { fenced as fencedHono } from '@leasehold/fence/http/hono'
import { fencedTx, FencingInterceptor } from '@leasehold/fence/http/nest'
import { guardSql } from '@leasehold/fence/migrations'
import { fence } from '@leasehold/fence/sqlite'
import { Controller, HttpException, Module, Put, Req, Res, UseInterceptors } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express, { type Request } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { serve } from '@hono/node-server'
import Database from 'libsql'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { holdOf } from '../../packages/fence/test/support/holds.js'

type Db = Database.Database
interface Server {
  readonly url: string
  stop(): Promise<unknown>
}

const db = new Database(':memory:')
db.exec(guardSql('sqlite'))
db.exec('CREATE TABLE item (id TEXT PRIMARY KEY, n INTEGER NOT NULL)')
const real = fence(db) as Guard<Db>
/** The guard of every server: the real one, or one that fails as a test wants it. */
let failure: Error | undefined
const guard: Guard<Db> = {
  with: (async (hold: never, options: never, body: never) => {
    if (failure !== undefined) throw failure
    return await real.with(hold, options, body)
  }) as Guard<Db>['with'],
}
const lockOf = (id: string | undefined) => `item/${id}`
/** What each handler does, by the item's name. */
function work(tx: Db, id: string | undefined): { n: number } | undefined {
  tx.prepare('UPDATE item SET n = n + 1 WHERE id = ?').run(id)
  if (id === 'broken') throw new Error('the handler failed')
  return id === 'silent' ? undefined : (tx.prepare('SELECT n FROM item WHERE id = ?').all(id)[0] as { n: number })
}

async function startExpress(): Promise<Server> {
  const app = express()
  const route = { lock: (request: Request<{ id: string }>) => lockOf(request.params.id) }
  app.put(
    '/items/:id',
    fencedExpress(guard, route, (tx, request, response) => {
      if (request.params.id === 'hasty') response.json({ done: true })
      return work(tx, request.params.id)
    }) as never,
  )
  app.use((_error: unknown, _request: unknown, response: express.Response, _next: unknown) => {
    if (!response.headersSent) response.status(500).end()
  })
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => new Promise((done) => server.close(done)),
  }
}

async function startFastify(): Promise<Server> {
  const app = fastify()
  type Item = FastifyRequest<{ Params: { id: string } }>
  app.put<{ Params: { id: string } }>(
    '/items/:id',
    fencedFastify(guard, { lock: (request: Item) => lockOf(request.params.id) }, (tx, request, reply) => {
      if (request.params.id === 'hasty') reply.send({ done: true })
      return work(tx, request.params.id)
    }) as never,
  )
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, stop: () => app.close() }
}

async function startHono(): Promise<Server> {
  const app = new Hono()
  app.onError((_error, c) => c.body(null, 500))
  app.put(
    '/items/:id',
    fencedHono(guard, { lock: (c: Context) => lockOf(c.req.param('id')) }, (tx, c) => {
      const answer = work(tx, c.req.param('id'))
      return answer === undefined ? c.body(null, 204) : answer
    }),
  )
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => new Promise((done) => server.close(done)),
  }
}

class Items {
  put(request: Request<{ id: string }>, response: express.Response) {
    if (request.params.id === 'hasty') response.json({ done: true })
    const answer = work(fencedTx<Db>(request), request.params.id)
    if (answer === undefined) response.status(204)
    return answer
  }
}
class Shop {}

async function startNest(): Promise<Server> {
  // As decorators do it.
  const route = { lock: (request: Request<{ id: string }>) => lockOf(request.params.id), HttpException }
  const descriptor = Object.getOwnPropertyDescriptor(Items.prototype, 'put') as PropertyDescriptor
  Controller('items')(Items)
  Put(':id')(Items.prototype, 'put', descriptor)
  UseInterceptors(new FencingInterceptor(guard, route) as never)(Items.prototype, 'put', descriptor)
  Req()(Items.prototype, 'put', 0)
  Res({ passthrough: true })(Items.prototype, 'put', 1)
  Module({ controllers: [Items] })(Shop)
  const app = await NestFactory.create(Shop, { logger: false })
  await app.listen(0, '127.0.0.1')
  return { url: await app.getUrl(), stop: () => app.close() }
}

describe.each([
  ['Express', startExpress],
  ['Fastify', startFastify],
  ['Hono', startHono],
  ['Nest', startNest],
] as const)('a fenced route of %s', (name, start) => {
  let server: Server
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server.stop())
  beforeEach(() => {
    failure = undefined
    db.exec('DELETE FROM leasehold_guard; DELETE FROM item')
    for (const id of ['bolt', 'nut', 'silent', 'broken', 'hasty']) db.prepare('INSERT INTO item VALUES (?, 0)').run(id)
  })
  const put = (token: bigint, id = 'bolt', lock = `item/${id}`) =>
    fencedFetch(holdOf(token, lock))(`${server.url}/items/${id}`, { method: 'PUT' })
  const n = (id = 'bolt') => (db.prepare('SELECT n FROM item WHERE id = ?').all(id)[0] as { n: number }).n

  it('lets the holder in, and answers after the commit', async () => {
    const answer = await put(33n)
    expect([answer.status, await answer.json()]).toEqual([200, { n: 1 }])
    expect((await put(33n, 'silent')).status).toBe(204)
    expect([n(), n('silent')]).toEqual([1, 1])
  })

  it('refuses a stale token with 412', async () => {
    await put(34n)
    const answer = await put(33n)
    expect([answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([
      412,
      'application/problem+json',
    ])
    const problem = { status: 412, code: 'stale-token', resource: 'item/bolt', token: '33', mark: '34' }
    expect(await answer.json()).toMatchObject(problem)
    expect(n()).toBe(1)
  })

  it('asks for a token of this lock with 428, and takes no other', async () => {
    const bare = await fetch(`${server.url}/items/bolt`, { method: 'PUT' })
    expect([bare.status, bare.headers.get('content-type')?.split(';')[0]]).toEqual([428, 'application/problem+json'])
    expect(await bare.json()).toMatchObject({ status: 428, code: 'fencing-token-required' })
    const other = await put(99n, 'bolt', 'item/nut')
    expect([other.status, ((await other.json()) as { hint: string }).hint]).toEqual([
      428,
      expect.stringContaining('item%2Fbolt=33'),
    ])
    const unreadable = await fetch(`${server.url}/items/bolt`, { method: 'PUT', headers: { 'Fencing-Token': 'x' } })
    expect(unreadable.status).toBe(400)
    expect(n()).toBe(0)
  })

  it('rolls back, with the mark, when the handler fails', async () => {
    expect((await put(34n, 'broken')).status).toBe(500)
    expect(n('broken')).toBe(0)
    expect(db.prepare('SELECT * FROM leasehold_guard').all()).toEqual([])
  })

  it('says 503 when the store is not there', async () => {
    failure = new UnavailableError('gone')
    const answer = await put(33n)
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'unreachable'])
  })

  if (name !== 'Hono')
    it('writes nothing when the handler has answered before the commit', async () => {
      await put(33n, 'hasty').catch(() => undefined)
      expect(n('hasty')).toBe(0)
    })

  it('refuses to be built without guard, lock or handler', () => {
    const makers = [fencedExpress, fencedFastify, fencedHono] as unknown as ((...args: unknown[]) => unknown)[]
    const route = { lock: () => 'a' }
    for (const make of makers) {
      expect(() => make({}, route, () => {})).toThrow(/guard/)
      expect(() => make(guard, {}, () => {})).toThrow(/lock/)
      expect(() => make(guard, route, 7)).toThrow(/handler/)
    }
    expect(() => new FencingInterceptor(guard, route as never)).toThrow(/HttpException/)
    expect(() => fencedTx({})).toThrow(/does not run in a guarded/)
  })
})
