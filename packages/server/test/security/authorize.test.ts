import { AccessError, covers, encodeClientMessages, permissionOf, STREAM_VERSION } from '@leasehold/core'
import { type AccessRequest, createServer } from '@leasehold/server'
import { describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { serve, until } from '../support/harness.js'
import { LocalMember } from '../support/local-member.js'

/** Allows one key to acquire and read below `billing`. */
function rules(seen: AccessRequest[]) {
  return (request: AccessRequest): void => {
    seen.push(request)
    if (request.apiKey !== 'secret') throw new AccessError('no such key')
    const allowed = request.verb === 'acquire' || request.verb === 'read'
    if (!allowed || request.names.some((name) => !covers('billing', name))) {
      throw new AccessError('this key is for billing', { code: 'forbidden' })
    }
  }
}

describe('an authorize hook', () => {
  it('is called for every operation before it has an effect', async () => {
    const seen: AccessRequest[] = []
    const { call, member } = await serve({ authorize: rules(seen) })
    const ask = (method: string, path: string, body?: unknown, key = 'secret') =>
      call(method, path, body, { 'content-type': 'application/json', authorization: `Bearer ${key}` })
    expect(await ask('POST', '/v1/acquire', { name: 'billing/1' }, 'wrong')).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    })
    expect(await ask('POST', '/v1/acquire', { locks: ['billing/1', 'other'] })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    })
    expect(await ask('POST', '/v1/steal', { name: 'billing/1', reason: 'x' })).toMatchObject({ status: 403 })
    expect(await ask('GET', '/v1/locks')).toMatchObject({ status: 403 })
    expect(await ask('PUT', '/v1/registers?key=other', { value: 1 })).toMatchObject({ status: 403 })
    expect(await ask('GET', '/v1/watch')).toMatchObject({ status: 403 })
    expect(await ask('POST', '/v1/sessions/end', { session: '281474976710657' })).toMatchObject({ status: 403 })
    expect(member.submitted).toEqual([])
    const got = await ask('POST', '/v1/acquire', { name: 'billing/1' })
    expect(got.status).toBe(200)
    expect((await ask('GET', '/v1/locks?prefix=billing')).status).toBe(200)
    expect((await ask('POST', '/v1/renew', { hold: got.body.hold })).status).toBe(200)
    expect(seen.every((one) => one.remote.startsWith('127.0.0.1:'))).toBe(true)
  })

  it('is called for streams, with the key of their hello', async () => {
    const seen: AccessRequest[] = []
    const { url, member } = await serve({ authorize: rules(seen) })
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/stream`)
    await new Promise((resolve) => socket.once('open', resolve))
    socket.send(
      encodeClientMessages([
        { kind: 'hello', version: STREAM_VERSION, apiKey: 'secret', client: '', epoch: 0 },
        { kind: 'get', correlation: 1, key: 'billing/x', stale: true },
        { kind: 'get', correlation: 2, key: 'other', stale: true },
        { kind: 'command', correlation: 3, command: { kind: 'steal', hold: 1 as never, actor: '', reason: '' } },
      ]),
    )
    await until(() => seen.length === 3)
    expect(seen.map((one) => [one.verb, one.apiKey])).toEqual([
      ['read', 'secret'],
      ['read', 'secret'],
      ['steal', 'secret'],
    ])
    expect(member.submitted).toEqual([])
    socket.terminate()
  })

  it('permits the server to listen for other machines', async () => {
    const server = await createServer({
      member: new LocalMember(),
      listen: { host: '0.0.0.0', port: 0 },
      authorize: rules([]),
    })
    await server.close()
  })
})

describe('a message of a stream', () => {
  const nothing = () => []

  it('needs a permission, except for ping, unwatch and releases', () => {
    expect(permissionOf({ kind: 'ping', correlation: 1 }, nothing)).toBeUndefined()
    expect(permissionOf({ kind: 'watch', correlation: 1, prefix: 'a' }, nothing)).toMatchObject({
      verb: 'read',
      names: ['a'],
    })
    const close = { kind: 'closeSession', session: 1 as never, reason: '' } as const
    const right = (by: 'owner' | 'operator') =>
      permissionOf({ kind: 'command', correlation: 1, command: { ...close, by } }, nothing)?.verb
    expect([right('operator'), right('owner')]).toEqual(['admin', undefined])
  })

  it('that steals a hold needs the permission for its locks, or for the whole service if it does not exist', () => {
    const command = { kind: 'steal', hold: 7 as never, actor: '', reason: '' } as const
    const right = (names: readonly string[]) =>
      permissionOf({ kind: 'command', correlation: 1, command }, () => names)?.names
    expect(right(['billing/1', 'billing/2'])).toEqual(['billing/1', 'billing/2'])
    expect(right([])).toEqual([''])
  })
})
