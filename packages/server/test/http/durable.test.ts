import { describe, expect, it } from 'vitest'
import { call, until } from '../support/harness.js'
import { dataFolder, startReplicaServer } from '../support/replica-server.js'

describe('a server with a data folder', () => {
  it('keeps holds, tokens, registers, sessions and request numbers over a restart', async () => {
    const dir = dataFolder()
    const first = await startReplicaServer(dir)
    const { session } = (await first.post('/v1/sessions', { ttl: '1m' })).body
    const a = await first.post('/v1/acquire', { name: 'a', session })
    const own = await first.post('/v1/acquire', { name: 'own', ttl: '1m' })
    const numbered = await first.post('/v1/acquire', { name: 'n', session, request: 5 })
    const kept = await first.post('/v1/acquire', { name: 'p', persistent: true })
    await call(first.url, 'PUT', '/v1/registers?key=k', { value: 1 })
    const waiting = first.post('/v1/acquire', { name: 'a', session, wait: '30s' })
    await until(async () => (await first.get('/v1/locks')).body.pending.length === 1)
    await first.stop()
    expect(await waiting).toMatchObject({ status: 503, body: { code: 'unreachable' } })

    const second = await startReplicaServer(dir)
    const { held, pending } = (await second.get('/v1/locks')).body
    expect(new Set(held.map((one: { hold: string }) => one.hold))).toEqual(
      new Set([a, own, numbered, kept].map((one) => one.body.id)),
    )
    expect(pending).toEqual([])
    expect((await second.get('/v1/registers?key=k')).body.value).toBe(1)
    expect(await second.post('/v1/renew', { hold: own.body.hold })).toMatchObject({ status: 200 })
    expect((await second.post('/v1/acquire', { name: 'n', session, request: 5 })).body.hold).toBe(numbered.body.hold)
    const b = await second.post('/v1/acquire', { name: 'b', session })
    expect(BigInt(b.body.token)).toBeGreaterThan(BigInt(kept.body.token))
    for (const { body } of [a, own, numbered, kept, b]) {
      expect(await second.post('/v1/release', { hold: body.hold })).toMatchObject({ status: 200 })
    }
    expect((await second.get('/v1/locks')).body.held).toEqual([])
    await second.stop()
  })
})
