import { describe, expect, it } from 'vitest'
import { serve, until } from '../../support/harness.js'

describe('GET /v1/locks', () => {
  it('matches prefixes by whole segments, and returns pages', async () => {
    const { post, get } = await serve()
    for (const name of ['account/1', 'account/1/x', 'account/10', 'ümlaut/ß']) await post('/v1/acquire', { name })
    const names = async (query: string) =>
      (await get(`/v1/locks?${query}`)).body.held.flatMap((one: { locks: { name: string }[] }) =>
        one.locks.map((lock) => lock.name),
      )
    expect((await names('prefix=account/1')).sort()).toEqual(['account/1', 'account/1/x'])
    expect(await names(`name=${encodeURIComponent('ümlaut/ß')}`)).toEqual(['ümlaut/ß'])
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 10; page++) {
      const { body } = await get(`/v1/locks?limit=1${cursor}`)
      seen.push(...body.held.map((one: { locks: { name: string }[] }) => one.locks[0]?.name))
      if (body.next === null) break
      cursor = `&cursor=${encodeURIComponent(body.next)}`
    }
    expect(seen.sort()).toEqual(['account/1', 'account/1/x', 'account/10', 'ümlaut/ß'])
  })

  it('returns waiters', async () => {
    const { post, get } = await serve()
    const { hold } = (await post('/v1/acquire', { name: 'a' })).body
    const waiting = post('/v1/acquire', { name: 'a', client: 'second', wait: '10s' })
    await until(async () => (await get('/v1/locks')).body.pending.length === 1)
    expect((await get('/v1/locks?name=a')).body.pending).toMatchObject([
      { client: 'second', locks: [{ name: 'a', mode: 'exclusive' }] },
    ])
    await post('/v1/release', { hold })
    expect((await waiting).status).toBe(200)
  })
})
