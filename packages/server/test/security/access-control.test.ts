import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeClientMessages } from '@leasehold/core'
import { readKeys, revokeKey } from '@leasehold/server'
import { describe, expect, test } from 'vitest'
import WebSocket from 'ws'
import { serve, until } from '../support/harness.js'
import { bearer, useKeyFile } from '../support/keys.js'
import { openStream } from '../support/raw-stream.js'

const keys = useKeyFile()
const auditFile = () => join(keys.folder, 'audit.jsonl')

function auditRecords(): Record<string, unknown>[] {
  return readFileSync(auditFile(), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

async function service(more: Parameters<typeof serve>[0] = {}) {
  const harness = await serve({ keys: keys.file, audit: auditFile(), ...more })
  const as = (text: string) => (method: string, path: string, body?: unknown) =>
    harness.call(method, path, body, bearer(text))
  return { ...harness, as }
}

describe('AccessControl with keys', () => {
  test('rejects and audits requests without a key, with a wrong key, or without a matching rule, before they have an effect', async () => {
    const billing = keys.create('billing:acquire,read').text
    const { as, member } = await service()
    const wrong = `${billing.slice(0, -1)}${billing.endsWith('A') ? 'B' : 'A'}`
    expect(await as('')('POST', '/v1/acquire', { name: 'billing/1' })).toMatchObject({ status: 401 })
    expect(await as(wrong)('POST', '/v1/acquire', { name: 'billing/1' })).toMatchObject({ status: 401 })
    expect(await as(billing)('POST', '/v1/acquire', { name: 'payroll/1' })).toMatchObject({
      status: 403,
      body: { code: 'forbidden' },
    })
    expect(await as(billing)('POST', '/v1/steal', { name: 'billing/1', reason: 'x' })).toMatchObject({ status: 403 })
    expect(await as(billing)('GET', '/v1/locks')).toMatchObject({ status: 403 })
    expect(member.submitted).toEqual([])
    const refused = auditRecords()
    expect(refused.map(({ event, code }) => [event, code])).toEqual([
      ['refused', 'unauthenticated'],
      ['refused', 'unauthenticated'],
      ['refused', 'forbidden'],
      ['refused', 'forbidden'],
      ['refused', 'forbidden'],
    ])
    expect(refused[2]).toMatchObject({
      verb: 'acquire',
      names: ['payroll/1'],
      principal: expect.stringMatching(/^key:/),
    })
    expect(readFileSync(auditFile(), 'utf8')).not.toContain(billing.slice(-43))
    expect((await as(billing)('POST', '/v1/acquire', { name: 'billing/1' })).status).toBe(200)
  })

  test('audits acquires, releases and steals', async () => {
    const all = keys.create('*:acquire,read,steal').text
    const { as } = await service()
    const { body } = await as(all)('POST', '/v1/acquire', { name: 'a', client: 'worker 1' })
    await as(all)('POST', '/v1/release', { hold: body.hold })
    await as(all)('POST', '/v1/acquire', { name: 'b' })
    await as(all)('POST', '/v1/steal', { name: 'b', reason: 'stuck', actor: 'ann' })
    const id = readKeys(keys.file)[0]?.id
    const records = auditRecords().map(({ event, names, principal, actor, why }) => ({
      event,
      names,
      principal,
      actor,
      why,
    }))
    expect(records).toContainEqual({
      event: 'acquired',
      names: ['a'],
      principal: `key:${id}`,
      actor: undefined,
      why: undefined,
    })
    expect(records).toContainEqual({
      event: 'released',
      names: ['a'],
      principal: undefined,
      actor: undefined,
      why: undefined,
    })
    expect(records).toContainEqual({ event: 'stolen', names: ['b'], principal: undefined, actor: 'ann', why: 'stuck' })
  })

  test('rejects a revoked key within seconds, also on an open stream, but allows it to release its holds', async () => {
    const text = keys.create('*:acquire,read').text
    keys.create('*:read')
    const { as, url, member } = await service()
    const { body } = await as(text)('POST', '/v1/acquire', { name: 'a', ttl: '60s' })
    const { socket, received } = await openStream(url, text)
    expect(received[0]).toMatchObject({ kind: 'welcome' })
    revokeKey(keys.file, (readKeys(keys.file)[0] as { id: string }).id)
    await until(async () => (await as(text)('GET', '/v1/locks')).status === 401)
    socket.send(encodeClientMessages([{ kind: 'get', correlation: 1, key: 'x', stale: true }]))
    await until(() => received.length > 1)
    expect(received[1]).toMatchObject({
      kind: 'error',
      refused: { code: 'unauthenticated', message: 'this key was revoked' },
    })
    const before = member.submitted.length
    expect((await as(text)('POST', '/v1/renew', { hold: body.hold })).status).toBe(401)
    expect(member.submitted).toHaveLength(before)
    expect((await as(text)('POST', '/v1/release', { hold: body.hold })).status).toBe(200)
    socket.terminate()
  })

  test('keeps the previous keys when the file becomes invalid', async () => {
    const text = keys.create('*:read').text
    const { as } = await service()
    writeFileSync(keys.file, 'not JSON')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect((await as(text)('GET', '/v1/locks')).status).toBe(200)
  })

  test('rejects a stream with the code of the error', async () => {
    keys.create('*:read')
    const { url } = await service()
    for (const wrong of ['', 'nonsense']) {
      const { socket, received } = await openStream(url, wrong)
      expect(received[0]).toMatchObject({ kind: 'error', correlation: 0, refused: { code: 'unauthenticated' } })
      await until(() => socket.readyState === WebSocket.CLOSED)
    }
  })

  test('allows a key to steal a hold by its id only below its prefix', async () => {
    const [other, ops] = [keys.create('*:acquire,read').text, keys.create('billing:steal').text]
    const { as, post } = await service()
    const ids = new Map<string, string>()
    for (const name of ['billing/1', 'payroll/1']) {
      ids.set(name, (await as(other)('POST', '/v1/acquire', { name })).body.id as string)
    }
    expect((await as(ops)('POST', '/v1/steal', { hold: ids.get('payroll/1'), reason: 'x' })).status).toBe(403)
    expect((await as(ops)('POST', '/v1/steal', { hold: ids.get('billing/1'), reason: 'x' })).status).toBe(200)
    expect((await post('/v1/steal', { hold: ids.get('payroll/1'), reason: 'x' })).status).toBe(401)
  })
})
