import { describe, expect, it } from 'vitest'
import { serve, until } from '../../support/harness.js'

describe('registers', () => {
  it('store JSON, text and bytes', async () => {
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

  it('are written conditionally by version', async () => {
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

  it('are listed below a prefix in pages', async () => {
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
